"""Teams: agents with roles, tools that they may call, and rules that end an episode early."""

from marft_envs.team.role import Role
from marft_envs.team.stop_rules import Agreement, StopRule, Word
from marft_envs.team.team import Team
from marft_envs.team.tools import Tool, ToolFault

__all__ = ["Agreement", "Role", "StopRule", "Team", "Tool", "ToolFault", "Word"]
