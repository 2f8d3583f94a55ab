from .parts import {{PART}}


{{CORE}}
