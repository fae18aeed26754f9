"""The radio as settings: layouts, path losses and fading models of ``channels`` as choices.

The classes of ``channels`` have no flags, limits of settings or help; these choices add them.
"""
