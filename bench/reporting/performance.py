def write(files): pass
