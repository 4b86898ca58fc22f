"""Takes findings of a cluster and hands few of them, one by one, to a site's script."""
