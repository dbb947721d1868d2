"""Where rows come from: local files, the hub and its cache, and the store of converted rows."""
