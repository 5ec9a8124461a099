-- Reads the state of servers. Arguments: IDs. A value that is too long to be an entry counts as none.
local values = {}
for index, id in ipairs(ARGV) do
  local value = redis.call('HGET', ENTRY, id)
  values[index] = value and #value <= MAX_ENTRY and value or ''
end
return values
