-- KEYS: a bucket each. ARGV: for each of them interval and burst in microseconds and requests, debt, wanted tokens.
-- A key of another type counts as none, and a time beyond what the limit can owe as that: nobody pays for somebody else's mistake.
-- Answers tokens, or, if there is not one more, a time to wait in microseconds as a negative number. The clock is that of this server.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local out = {}
for i, key in ipairs(KEYS) do
  local at = 4 * (i - 1)
  local interval, burst = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local debt, want = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local kept = redis.pcall('GET', key)
  local tat = type(kept) == 'string' and tonumber(kept) or 0
  tat = math.min(math.max(tat, now), now + 4 * burst * interval) + debt * interval
  local room = math.floor((now + burst * interval - tat) / interval)
  local tokens = math.max(0, math.min(room, want))
  tat = tat + tokens * interval
  redis.call('SET', key, string.format('%.0f', tat), 'PX', math.ceil((tat - now) / 1000) + 1000)
  if room >= 1 then
    out[i] = tokens
  else
    out[i] = -math.max(1, math.ceil(tat - now - (burst - 1) * interval))
  end
end
return out
