-- Reads all bans, up to a number. Arguments: the number. Returns them and the number of those that were left out.
local BAN, MAX_BAN = KEYS[8], 4096
local rows = redis.call('HGETALL', BAN)
local bans, left_out = {}, 0
for index = 1, #rows, 2 do
  if #rows[index] + #rows[index + 1] > MAX_BAN then
    -- Another program's.
  elseif #bans < 2 * tonumber(ARGV[1]) then
    bans[#bans + 1] = rows[index]
    bans[#bans + 1] = rows[index + 1]
  else
    left_out = left_out + 1
  end
end
return { bans, left_out }
