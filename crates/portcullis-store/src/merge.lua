-- Applies a batch of changes to records and tells the other nodes what came of them. Runs as a whole or not at all.
--
-- KEYS: the stream of changes, the last batch of this node, the records.
-- ARGV: now, node, number of the batch, entries to keep in the stream; then for each record:
--   count, then name and value of each variable that a record has which nobody stored yet;
--   count, then of each change: name, sign, and for "=" the value, for "+" difference, decay, the LAST_UPDATE_TIME that
--   the decay goes with, and the value for a variable that is not there.
local stream, mark = KEYS[1], KEYS[2]
local now, node, batch, keep = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]
if tonumber(redis.call('GET', mark) or '-1') >= batch then
  return 0
end
local function int(text)
  return tonumber(string.match(text, '^%s*[+-]?%d+') or '0')
end
local at = 5
local function take()
  at = at + 1
  return ARGV[at - 1]
end
for record = 3, #KEYS do
  local key, told = KEYS[record], {}
  -- A key of another type is no record of ours: nobody pays for somebody else's mistake.
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'hash' and kind ~= 'none' then
    redis.call('DEL', key)
  end
  local due = redis.call('HGET', key, '__expire_key')
  local missing = redis.call('HEXISTS', key, 'key') == 0 or (due and int(due) <= now)
  if missing then
    redis.call('DEL', key)
  end
  for _ = 1, tonumber(take()) do
    local name, value = take(), take()
    if missing then
      redis.call('HSET', key, name, value)
      told[#told + 1] = name
      told[#told + 1] = '=' .. value
    end
  end
  local last = redis.call('HGET', key, 'last_update_time')
  for _ = 1, tonumber(take()) do
    local name, sign = take(), take()
    local value
    if sign == '=' then
      value = take()
    elseif sign == '+' then
      local delta, decay, seen, first = tonumber(take()), tonumber(take()), take(), take()
      local note = '__expire_' .. name
      local expiry = redis.call('HGET', key, note)
      if expiry and int(expiry) <= now then
        redis.call('HDEL', key, name, note)
        told[#told + 1] = note
        told[#told + 1] = '-'
      end
      local stored = redis.call('HGET', key, name)
      if stored then
        local sum = int(stored)
        if last == seen then
          sum = sum - decay
        end
        value = string.format('%.0f', math.max(sum + delta, 0))
      else
        value = first
      end
    end
    told[#told + 1] = name
    if value then
      redis.call('HSET', key, name, value)
      told[#told + 1] = '=' .. value
    else
      redis.call('HDEL', key, name)
      told[#told + 1] = '-'
    end
  end
  due = redis.call('HGET', key, '__expire_key')
  if due then
    redis.call('EXPIREAT', key, string.format('%.0f', math.min(int(due), 100000000000)))
  else
    redis.call('PERSIST', key)
  end
  if #told > 0 then
    redis.call('XADD', stream, 'MAXLEN', '~', keep, '*', 'node', node, 'key', key, unpack(told))
  end
end
redis.call('SET', mark, ARGV[3], 'EX', 86400)
return 1
