-- Reads all bans, up to a number. Arguments: the number. Returns them, the number of those that were left out, and of other values.
local BAN, MAX_BAN = KEYS[8], 4096
local rows = redis.pcall('HGETALL', BAN)
if rows.err then return { {}, 0, 1 } end
local bans, left_out, malformed = {}, 0, 0
for index = 1, #rows, 2 do
  if #rows[index] + #rows[index + 1] > MAX_BAN then
    malformed = malformed + 1
  elseif #bans < 2 * tonumber(ARGV[1]) then
    bans[#bans + 1] = rows[index]
    bans[#bans + 1] = rows[index + 1]
  else
    left_out = left_out + 1
  end
end
return { bans, left_out, malformed }
