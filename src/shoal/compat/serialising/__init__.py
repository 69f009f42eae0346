"""`distributed.protocol` of old: what libraries call to make bytes of values by themselves.

shoal's own messages go another way (`protocol.codec`, `protocol.payload`); what is registered here
holds for both.
"""
