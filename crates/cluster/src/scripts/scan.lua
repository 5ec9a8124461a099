-- Reads the next part of all entries. Arguments: cursor, count. Values that are too long to be entries are counted only: a node could
-- not keep them.
local part = redis.call('HSCAN', ENTRY, ARGV[1], 'COUNT', ARGV[2])
local entries, skipped = {}, 0
for index = 1, #part[2], 2 do
  if #part[2][index] <= MAX_ID and #part[2][index + 1] <= MAX_ENTRY then
    entries[#entries + 1] = part[2][index]
    entries[#entries + 1] = part[2][index + 1]
  else
    skipped = skipped + 1
  end
end
return { part[1], entries, skipped }
