from .core import {{MAIN}}
