"""The sections, one file for each subject: every setting's name, default, unit and reason.

A setting is a field and the text below it; a section is a class, and a row here.
"""

from shoal.config.base import Settings
from shoal.config.sections.client import Client
from shoal.config.sections.connections import Comm, Tls
from shoal.config.sections.deploying import Adaptive, Deploying
from shoal.config.sections.looking import Dashboard, Histories, Logs
from shoal.config.sections.nanny import Nanny
from shoal.config.sections.scheduler import Replicas, Scheduler, Stealing
from shoal.config.sections.shuffle import Shuffle
from shoal.config.sections.worker import Memory, Profile, Worker

SECTIONS: tuple[type[Settings], ...] = (
    Comm,
    Tls,
    Scheduler,
    Stealing,
    Replicas,
    Worker,
    Memory,
    Profile,
    Nanny,
    Client,
    Deploying,
    Adaptive,
    Shuffle,
    Histories,
    Logs,
    Dashboard,
)
"""Every section; the manual's table is made from it."""

__all__ = [
    "SECTIONS",
    "Adaptive",
    "Client",
    "Comm",
    "Dashboard",
    "Deploying",
    "Histories",
    "Logs",
    "Memory",
    "Nanny",
    "Profile",
    "Replicas",
    "Scheduler",
    "Shuffle",
    "Stealing",
    "Tls",
    "Worker",
]
