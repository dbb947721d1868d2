"""Environments by name: registration, look-up, and other libraries' registries."""

from marft_envs.registry.pettingzoo_and_gymnasium import announce, announce_built_in
from marft_envs.registry.registration import Registration, RegistrationError
from marft_envs.registry.registry import UnknownEnvironment, environment_module, is_known, make, names, register
from marft_envs.registry.versioned_names import BUILT_IN, is_versioned, pettingzoo_id

__all__ = [
    "BUILT_IN", "Registration", "RegistrationError", "UnknownEnvironment", "announce", "announce_built_in",
    "environment_module", "is_known", "is_versioned", "make", "names", "pettingzoo_id", "register",
]  # fmt: skip
