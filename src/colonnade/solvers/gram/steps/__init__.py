"""Classification without rows: after the Gram matrix, steps in which only the label party is shown anything of rows."""
