-- Eight kinds of traffic for wrk, for one thread of it:
--   SCENARIO=01 wrk -t1 -c20 -d3s -s scenarios.lua http://127.0.0.1:8080
-- 01 GET with 3 arguments            05 multipart, 3 files of 10 KB
-- 02 GET with 5 random arguments     06 attacks
-- 03 form of 950 fields, 100 bytes   07 mixed: 7 GETs, 2 forms and 1 attack of ten
-- 04 JSON, 400 deep                  08 API calls with cookie and token, 3 of 10 with an attack somewhere
-- At the end a line `result` with answers and statuses. Attacks are such that the CRS refuses them at paranoia level 1.
local scenario = os.getenv("SCENARIO") or "01"
local letters = "abcdefghijklmnopqrstuvwxyz0123456789"
local sent, attacks = 0, 0

local function word(length)
  local out = {}
  for i = 1, length do
    local at = math.random(#letters)
    out[i] = letters:sub(at, at)
  end
  return table.concat(out)
end

local function escape(text)
  return (text:gsub("[^%w%-_.~]", function(c) return string.format("%%%02X", c:byte()) end))
end

local payloads = {
  "' OR '1'='1' -- ",
  "1 UNION SELECT name,password FROM accounts--",
  "<script>alert(document.cookie)</script>",
  "<svg onload=alert(1)>",
  "../../../../etc/passwd",
  "../../../../../proc/self/environ",
  ";cat /etc/passwd",
}
local function payload() return payloads[math.random(#payloads)] end

local common = "Host: shop.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) bench\r\n" ..
  "Accept: text/html,application/json;q=0.9,*/*;q=0.8\r\n"
local function get(target) return "GET " .. target .. " HTTP/1.1\r\n" .. common .. "\r\n" end
local function post(target, media_type, body, more)
  return "POST " .. target .. " HTTP/1.1\r\n" .. common .. (more or "") .. "Content-Type: " .. media_type ..
    "\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
end
local FORM = "application/x-www-form-urlencoded"

local function attack()
  attacks = attacks + 1
  return get("/search?q=" .. escape(payload()))
end

local function form()
  local fields = {}
  for n = 1, 950 do fields[n] = "field" .. n .. "=" .. word(100) end
  return post("/form", FORM, table.concat(fields, "&"))
end

local function upload()
  local boundary = "----bench" .. word(16)
  local parts = {}
  for n = 1, 3 do
    parts[n] = "--" .. boundary .. "\r\nContent-Disposition: form-data; name=\"file" .. n .. "\"; filename=\"notes" .. n ..
      ".txt\"\r\nContent-Type: text/plain\r\n\r\n" .. word(10240) .. "\r\n"
  end
  return post("/upload", "multipart/form-data; boundary=" .. boundary, table.concat(parts) .. "--" .. boundary .. "--\r\n")
end

local function api()
  local comment, sort, theme = "thank you for the quick delivery", "created_at", "dark"
  if math.random(10) <= 3 then
    attacks = attacks + 1
    local where = math.random(3)
    if where == 1 then comment = payload()
    elseif where == 2 then sort = escape(payload())
    -- In cookies the CRS looks for less at this level.
    else theme = escape(payloads[math.random(6)]) end
  end
  local body = '{"id":' .. math.random(1000000) .. ',"user":{"name":"user ' .. word(6) .. '","email":"' .. word(8) ..
    '@example.com","tags":["' .. word(5) .. '","' .. word(5) .. '"]},"comment":"' .. comment .. '"}'
  return post("/api?page=" .. math.random(100) .. "&sort=" .. sort, "application/json", body,
    "Cookie: session=" .. word(24) .. "; theme=" .. theme .. "\r\nAuthorization: Bearer " .. word(32) .. "\r\n")
end

-- Large bodies are made once: wrk is not what is measured.
local prepared = {}
local function one_of(make)
  local at = sent % 8
  prepared[at] = prepared[at] or make()
  return prepared[at]
end
local deep = post("/api", "application/json", string.rep('{"k":', 400) .. '"v"' .. string.rep("}", 400))

local kinds = {
  ["01"] = function() return get("/products?category=books&sort=price&page=" .. sent % 20) end,
  ["02"] = function()
    return get("/search?a=" .. word(12) .. "&b=" .. word(12) .. "&c=" .. word(12) .. "&d=" .. word(12) .. "&e=" .. word(12))
  end,
  ["03"] = function() return one_of(form) end,
  ["04"] = function() return deep end,
  ["05"] = function() return one_of(upload) end,
  ["06"] = attack,
  ["07"] = function()
    local kind = math.random(10)
    if kind == 1 then return attack() end
    if kind <= 3 then return post("/login", FORM, "username=" .. word(8) .. "&email=" .. word(8) .. "%40example.com&remember=1") end
    return get("/products?category=books&sort=price&page=" .. math.random(1000))
  end,
  ["08"] = api,
}
local make = kinds[scenario]

function request()
  sent = sent + 1
  return make()
end

answered, ok, refused, other, expected = 0, 0, 0, 0, 0
function response(status)
  answered = answered + 1
  if status == 200 then ok = ok + 1 elseif status == 403 then refused = refused + 1 else other = other + 1 end
  expected = attacks
end

local threads = {}
function setup(thread) threads[#threads + 1] = thread end
function done(summary, latency)
  local thread = threads[1]
  local errors = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format("result %d %.4f %d %d %d %d %d %.1f %.1f\n", summary.requests, summary.duration / 1e6, thread:get("ok"),
    thread:get("refused"), thread:get("other"), thread:get("expected"), errors, latency:percentile(50), latency:percentile(99)))
end
