-- Ends leases that are due, reports a node, and reads the state of the log. Arguments: epoch, token, node, report, which is empty if
-- the node has reported recently, number of the last change that the node knows.
local epoch, token, node, report, after = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local NODE, BAN = KEYS[7], KEYS[8]
-- Leases that one call ends: other commands wait for it. The node calls again at once if there are more.
local MAX_EXPIRED = 500
-- Limits beyond which a row cannot be a node's report.
local MAX_NODES, MAX_ROW = 1000, 2048
local DAY = 86400000
-- No lease is longer than a day. One that ends later is another program's: changes of its server would seem to be older.
local MAX_LEASE = 2 * DAY
-- Number of entries that are checked when leases are ended.
local CHECKED = 100
-- Leases are ended this often, in ms, however many nodes there are.
local EXPIRY_INTERVAL = 800
-- Time in ms in which the nodes renew all leases after an outage of the store, before any of them ends.
local GRACE = 10000
local meta = redis.call('HMGET', META, 'epoch', 'ticked', 'grace', 'expired', 'swept', 'seq', 'token', 'format', 'secret', 'checked')
-- A store that has lost a part of its metadata is set up again, as one that was emptied.
if meta[1] ~= epoch or not is_number(meta[6]) or not meta[8] or not meta[9] then return { 'epoch' } end
last_seq = tonumber(meta[6])
local time = now()
local ms = string.format('%.0f', time)
-- A time that is far ahead stays so: the clock was set back.
local ticked, grace, expired = bounded(meta[2], 1e15), bounded(meta[3], time + GRACE), bounded(meta[4], 1e15)
if time > ticked + 5000 then grace = time + GRACE end
local is_expiry = time >= grace and (time >= expired + EXPIRY_INTERVAL or expired > time)
-- Before any other change: this one needs memory. Leases must not end in a store without memory, where they cannot be renewed; and after
-- a command that frees memory, everything succeeds in a script.
redis.call('HSET', META, 'ticked', ms, 'grace', string.format('%.0f', grace), 'expired', is_expiry and ms or string.format('%.0f', expired))

-- Every server has a lease, and an endpoint that names it. If the key of the leases was deleted or evicted, servers would never be
-- removed; without that of the endpoints, none would be replaced.
local servers = redis.call('HLEN', ENTRY)
local has_lost_keys = 2 * math.min(redis.call('ZCARD', LEASE), redis.call('HLEN', AT)) < servers
if ticked > time + TOLERANCE or has_lost_keys then
  -- If the clock was set back, leases would end too late by as much, and changes would seem to be older than what they replace. In
  -- all these cases the nodes write everything again.
  redis.call('DEL', META, ENTRY, AT, LEASE, TOMB, LOG)
  return { 'epoch' }
end
local has_more, due = '0', {}
if is_expiry then
  due = redis.call('ZRANGE', LEASE, '-inf', ms, 'BYSCORE', 'LIMIT', 0, MAX_EXPIRED)
  if #due == MAX_EXPIRED then has_more = '1' end
  local too_late = string.format('(%.0f', time + MAX_LEASE)
  for _, member in ipairs(redis.call('ZRANGE', LEASE, too_late, '+inf', 'BYSCORE', 'LIMIT', 0, MAX_EXPIRED)) do
    due[#due + 1] = member
  end
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
  -- Another program may have overwritten entries. All are checked in turn, some each time; once one was found and deleted, nodes read
  -- everything, and find the others.
  local cursor = meta[10] or '0'
  local part = redis.pcall('HSCAN', ENTRY, cursor, 'COUNT', CHECKED)
  -- The cursor is another program's.
  if part.err then part = { '0', {} } end
  for index = 1, #part[2], 2 do
    if not is_entry(part[2][index + 1]) then redis.call('HDEL', ENTRY, part[2][index]) end
  end
  if part[1] ~= cursor then redis.call('HSET', META, 'checked', part[1]) end
end
-- If there are more, the next call ends them at once.
if has_more == '1' then redis.call('HSET', META, 'expired', string.format('%.0f', expired)) end

-- Number of bans; -1 if the key has another program's value.
local bans = redis.pcall('HLEN', BAN)
if type(bans) == 'table' then bans = -1 end
-- Bans that ended or were lifted are kept for 30 days, for nodes that were away.
if bans > 0 and time > bounded(meta[5], time) + DAY then
  redis.call('HSET', META, 'swept', ms)
  local rows = redis.call('HGETALL', BAN)
  for index = 1, #rows, 2 do
    local ends = tonumber(string.match(rows[index + 1], '^%d+ (%d+) ') or 0)
    if ends > 0 and ends + 30 * DAY < time then redis.call('HDEL', BAN, rows[index]) end
  end
end

local nodes = ''
if report ~= '' then
  redis.call('HSET', NODE, node, ms .. ' ' .. report)
  local rows = redis.call('HGETALL', NODE)
  nodes = {}
  for index = 1, #rows, 2 do
    local seen = tonumber(string.match(rows[index + 1], '^%d+') or 0)
    if time - seen > 3600000 or seen - time > 60000 or #rows[index + 1] > MAX_ROW then
      redis.call('HDEL', NODE, rows[index])
    elseif #nodes < 2 * MAX_NODES then
      nodes[#nodes + 1] = rows[index]
      nodes[#nodes + 1] = rows[index + 1]
    end
  end
end
local seq, last = meta[6], meta[7]
if #due > 0 then
  local changed = redis.call('HMGET', META, 'seq', 'token')
  seq, last = changed[1], changed[2]
end
-- If the log was trimmed or deleted, a node that waits for the next record would not notice it before there is another change.
local is_complete = '1'
if tonumber(seq) > after then
  local id = string.format('%.0f-0', after + 1)
  local next_record = redis.pcall('XRANGE', LOG, id, id)
  if next_record.err or not next_record[1] then is_complete = '0' end
end
return { 'done', seq or '0', last or '', ms, nodes, has_more, redis.call('HLEN', ENTRY), bans, is_complete }
