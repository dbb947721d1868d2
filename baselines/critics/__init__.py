"""Critics: predictions of the team's score before each action (docs/reference/critic.md)."""
