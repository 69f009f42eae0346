"""The scheduler: model < policies < machine < shell."""
