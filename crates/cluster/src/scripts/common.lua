-- Functions that the scripts share. Keys, in this order: meta, entry, at, lease, tomb, log, node, ban.
--
-- An entry is: format (1 byte), number of its last change (8), origin (1), transport (1), length of the IPv4 endpoint (1) and the
-- endpoint, length of the IPv6 endpoint (1) and the endpoint, body. An endpoint is the source address and port, followed by the
-- listed address and port.
local META, ENTRY, AT, LEASE, TOMB, LOG = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
-- How much earlier a change may have been received than what it replaces, in ms: clocks and batches differ by less.
local TOLERANCE = 1000
-- The log has at least this number of records, and twice as many as there are entries.
local MIN_LOG = 20000
-- Limits beyond which a field and its value cannot be a server's ID and entry.
local MAX_ID, MAX_ENTRY = 64, 100128
-- Size of an entry without its endpoints and its block.
local MIN_ENTRY = 38
-- Number of the last change, once a script has read it.
local last_seq = math.huge

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Whether a text is a number that can be incremented, and that is exact here.
local function is_number(text)
  return text and #text <= 15 and (text == '0' or string.match(text, '^[1-9]%d*$') ~= nil)
end

-- The number in a text, between 0 and a limit. Without one, it is 0: another program may have written the text.
local function bounded(text, limit)
  local number = tonumber(text or 0) or 0
  if number ~= number then return 0 end
  return math.max(0, math.min(number, limit))
end

-- Whether changes of an epoch are valid. Without the number of the last change, none are: numbers would begin again.
local function is_epoch(epoch)
  local meta = redis.call('HMGET', META, 'epoch', 'seq')
  if meta[1] ~= epoch or not is_number(meta[2]) then return false end
  last_seq = tonumber(meta[2])
  return true
end

-- The error of a key with another program's value; nil if the key has its own, or none.
local function wrong_type(key, expected)
  local found = redis.call('TYPE', key).ok
  if found == 'none' or found == expected then return nil end
  return redis.error_reply('WRONGTYPE the key ' .. key .. ' is a ' .. found .. ', not a ' .. expected)
end

-- Whether a value can be an entry. Values that cannot are deleted where they are found: the nodes notice that the store has fewer
-- servers than they know, and the nodes of these servers write them again. An entry with a later number than the last change is another
-- program's: no change of its server would count.
local function is_entry(value)
  if #value < MIN_ENTRY or #value > MAX_ENTRY or string.byte(value, 1) ~= 1 then return false end
  local n4 = string.byte(value, 12)
  local n6 = string.byte(value, 13 + n4)
  if (n4 ~= 0 and n4 ~= 12) or (n6 ~= 0 and n6 ~= 36) or n4 + n6 == 0 then return false end
  return #value >= MIN_ENTRY + n4 + n6 and struct.unpack('>I8', value, 2) <= last_seq
end

local function parse(value)
  if not value or not is_entry(value) then return nil end
  local n4 = string.byte(value, 12)
  local n6 = string.byte(value, 13 + n4)
  return {
    seq = struct.unpack('>I8', value, 2),
    origin = string.byte(value, 10),
    transport = string.sub(value, 11, 11),
    ['4'] = string.sub(value, 13, 12 + n4),
    ['6'] = string.sub(value, 14 + n4, 13 + n4 + n6),
    body = string.sub(value, 14 + n4 + n6),
  }
end

local function emit(seq, entry)
  return '\1' .. struct.pack('>I8', seq) .. string.char(entry.origin) .. entry.transport
    .. string.char(#entry['4']) .. entry['4'] .. string.char(#entry['6']) .. entry['6'] .. entry.body
end

-- The listed address and port of an endpoint, with its transport: the key of the endpoint's server.
local function endpoint_key(transport, endpoint)
  return transport .. string.sub(endpoint, #endpoint / 2 + 1)
end

local function append(kind, id, value, token, seq)
  local previous = redis.call('HGET', META, 'token') or ''
  token = token .. struct.pack('>I8', seq)
  redis.call('HSET', META, 'token', token)
  local length = math.max(MIN_LOG, 2 * redis.call('HLEN', ENTRY))
  local function add(call)
    return call('XADD', LOG, 'MAXLEN', '~', length, string.format('%.0f-0', seq), 'k', kind, 'i', id, 'v', value, 'c', token, 'p', previous)
  end
  -- Another program may have appended a record with a later number: the log begins anew.
  local added = add(redis.pcall)
  if type(added) == 'table' and added.err then
    redis.call('DEL', LOG)
    add(redis.call)
  end
end

local function next_seq()
  last_seq = redis.call('HINCRBY', META, 'seq', 1)
  return last_seq
end

local function unbind(id, entry)
  for _, family in ipairs({ '4', '6' }) do
    if #entry[family] > 0 then
      local key = endpoint_key(entry.transport, entry[family])
      if redis.call('HGET', AT, key) == id then redis.call('HDEL', AT, key) end
    end
  end
end

local function delete(id, entry, reason, token)
  unbind(id, entry)
  redis.call('HDEL', ENTRY, id)
  redis.call('ZREM', LEASE, '4' .. id, '6' .. id)
  local seq = next_seq()
  append('del', id, reason, token, seq)
  return seq
end

local function lease(id, family)
  return tonumber(redis.call('ZSCORE', LEASE, family .. id) or 0)
end

local function latest_lease(id)
  return math.max(lease(id, '4'), lease(id, '6'))
end
