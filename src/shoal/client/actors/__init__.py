"""Actors as their users see them: a proxy that calls, and the futures of its calls."""

from shoal.client.actors.futures import ActorFuture, BaseActorFuture, EagerActorFuture
from shoal.client.actors.proxy import Actor

__all__ = ["Actor", "ActorFuture", "BaseActorFuture", "EagerActorFuture"]
