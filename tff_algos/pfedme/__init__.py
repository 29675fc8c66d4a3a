"""pFedMe: personal models that are the proximal points of the clients' losses."""
