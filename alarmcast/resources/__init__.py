"""What there is to ask and to order: one file a noun, each call written once for both clients."""
