"""What tests of faults are made with: roles, a proxy, small machines, and checks at the end."""
