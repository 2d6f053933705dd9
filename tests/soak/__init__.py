"""Writers, readers and compactors on one store for minutes, and a judge who knows what each of them must see."""
