//! What every model client shares: requests, replies, usage, retries, budgets, prices, scripted and recorded models
