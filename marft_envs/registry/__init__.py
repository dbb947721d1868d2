"""Registration of environments, and their look-up by name, here and in PettingZoo and Gymnasium."""

from marft_envs.registry.pettingzoo_and_gymnasium import register_built_in, register_in_libraries
from marft_envs.registry.registration import Registration, RegistrationError
from marft_envs.registry.registry import UnknownEnvironment, environment_module, is_known, make, names, register
from marft_envs.registry.versioned_names import BUILT_IN, is_versioned, pettingzoo_id

__all__ = [
    "BUILT_IN", "Registration", "RegistrationError", "UnknownEnvironment", "environment_module", "is_known",
    "is_versioned", "make", "names", "pettingzoo_id", "register", "register_built_in", "register_in_libraries",
]  # fmt: skip
