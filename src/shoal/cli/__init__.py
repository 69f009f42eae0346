"""Commands: options in, one call out, nothing decided.

They load `click` alone; what a command needs is imported as it runs, since `dask` reads all of them
whenever it is called.
"""
