"""The calls, by what they are about; each reads its request, asks one other module, and answers."""
