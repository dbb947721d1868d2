"""Critics: the team's score as predicted before each action."""
