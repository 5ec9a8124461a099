-- Reads the next part of all entries. Arguments: cursor, size in bytes from which the part is complete. Values that cannot be entries
-- are counted and deleted.
--
-- HSCAN takes a number of entries, not a size; their sizes differ by a factor of 300. A few at a time are read until there are enough.
local STEP, MAX_STEPS = 100, 50
local cursor, size, entries, skipped = ARGV[1], 0, {}, 0
local seq = redis.call('HGET', META, 'seq')
if is_number(seq) then last_seq = tonumber(seq) end
for _ = 1, MAX_STEPS do
  local part = redis.call('HSCAN', ENTRY, cursor, 'COUNT', STEP)
  cursor = part[1]
  for index = 1, #part[2], 2 do
    local id, value = part[2][index], part[2][index + 1]
    size = size + #id + #value
    if #id <= MAX_ID and is_entry(value) then
      entries[#entries + 1] = id
      entries[#entries + 1] = value
    else
      skipped = skipped + 1
      redis.call('HDEL', ENTRY, id)
    end
  end
  if cursor == '0' or size >= tonumber(ARGV[2]) then break end
end
return { cursor, entries, skipped }
