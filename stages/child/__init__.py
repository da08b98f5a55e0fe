"""What runs in the killable child: ``python -m stages.child``, started by ``stages.sandbox`` alone."""
