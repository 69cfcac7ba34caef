-- The span in which the order was submitted, as W3C Trace Context has it: spans of other processes are its children.
ALTER TABLE orders ADD COLUMN traceparent text;
