{{CODE}}
