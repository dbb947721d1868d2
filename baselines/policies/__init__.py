"""Policies: adapters or full copies on a frozen base model, which is also the reference policy pi_0."""
