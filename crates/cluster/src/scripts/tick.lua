-- Ends leases that are due, reports a node, and reads the state of the log. Arguments: epoch, token, node, report.
local epoch, token, node, report = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local NODE, BAN = KEYS[7], KEYS[8]
-- Leases that one call ends: other commands wait for it. The node calls again at once if there are more.
local MAX_EXPIRED = 500
-- Limits beyond which a row cannot be a node's report.
local MAX_NODES, MAX_ROW = 1000, 2048
local DAY = 86400000
if redis.call('HGET', META, 'epoch') ~= epoch then return { 'epoch' } end
local time = now()
local ms = string.format('%.0f', time)

-- After an outage of the store, the nodes renew all leases before any of them ends.
local ticked = tonumber(redis.call('HGET', META, 'ticked') or 0)
local grace = tonumber(redis.call('HGET', META, 'grace') or 0)
if ticked > time + TOLERANCE then
  -- The clock was set back. Leases would end too late by as much, and changes would seem to be older than what they replace, so the
  -- nodes write everything again.
  redis.call('DEL', META, ENTRY, AT, LEASE, TOMB, LOG)
  return { 'epoch' }
end
if time > ticked + 5000 then
  grace = time + 10000
  redis.call('HSET', META, 'grace', string.format('%.0f', grace))
end
redis.call('HSET', META, 'ticked', ms)
local has_more = '0'
if time >= grace then
  local due = redis.call('ZRANGE', LEASE, '-inf', ms, 'BYSCORE', 'LIMIT', 0, MAX_EXPIRED)
  if #due == MAX_EXPIRED then has_more = '1' end
  for _, member in ipairs(due) do
    redis.call('ZREM', LEASE, member)
    local family, id = string.sub(member, 1, 1), string.sub(member, 2)
    local entry = parse(redis.call('HGET', ENTRY, id))
    if entry and entry[family] and #entry[family] > 0 then
      local key = endpoint_key(entry.transport, entry[family])
      if redis.call('HGET', AT, key) == id then redis.call('HDEL', AT, key) end
      entry[family] = ''
      if #entry['4'] == 0 and #entry['6'] == 0 then
        delete(id, entry, 'expired', token)
      else
        local seq = next_seq()
        local value = emit(seq, entry)
        redis.call('HSET', ENTRY, id, value)
        append('left', id, value, token, seq)
      end
    end
  end
  redis.call('ZREMRANGEBYSCORE', TOMB, '-inf', string.format('%.0f', time - 120000))
end

-- Bans that ended or were lifted are kept for 30 days, for nodes that were away.
if time > tonumber(redis.call('HGET', META, 'swept') or 0) + DAY then
  redis.call('HSET', META, 'swept', ms)
  local bans = redis.call('HGETALL', BAN)
  for index = 1, #bans, 2 do
    local ends = tonumber(string.match(bans[index + 1], '^%d+ (%d+) ') or 0)
    if ends > 0 and ends + 30 * DAY < time then redis.call('HDEL', BAN, bans[index]) end
  end
end

redis.call('HSET', NODE, node, ms .. ' ' .. report)
local rows = redis.call('HGETALL', NODE)
local nodes = {}
for index = 1, #rows, 2 do
  local seen = tonumber(string.match(rows[index + 1], '^%d+') or 0)
  if time - seen > 3600000 or seen - time > 60000 or #rows[index + 1] > MAX_ROW then
    redis.call('HDEL', NODE, rows[index])
  elseif #nodes < 2 * MAX_NODES then
    nodes[#nodes + 1] = rows[index]
    nodes[#nodes + 1] = rows[index + 1]
  end
end
local meta = redis.call('HMGET', META, 'seq', 'token')
return { 'done', meta[1] or '0', meta[2] or '', ms, nodes, has_more, redis.call('HLEN', ENTRY) }
