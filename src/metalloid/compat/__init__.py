"""Stand-ins for the systems people come from: change an import, keep the program.

Each module says which system it stands in for, and docs/migrate.md what is different.
"""
