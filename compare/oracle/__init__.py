"""What a tape must fire and when, in compiled code and in SQL, and how fired rows can differ."""
