-- Typical work of Lua scripts: trees, string concatenation, writing and parsing documents,
-- closures, and tables with short lifetimes. Lua allocates every table, string and closure with
-- malloc, and frees it when its collector finds it unreachable. The argument is the number of
-- repetitions; the output depends only on it. The script never iterates with pairs, because the
-- order of string keys depends on a random seed.

local repetitions = tonumber(arg[1])

-- A linear congruential generator, so that nothing depends on the C library's generator.
local state = 42
local function random(limit)
  state = (state * 1103515245 + 12345) % 2147483648
  return state // 8 % limit
end

local function tree(depth)
  if depth == 0 then return {} end
  return { tree(depth - 1), tree(depth - 1) }
end

local function nodes(node)
  if not node[1] then return 1 end
  return 1 + nodes(node[1]) + nodes(node[2])
end

local function trees()
  local long_lived = tree(13)
  local count = 0
  for _ = 1, 24 do count = count + nodes(tree(9)) end
  return count + nodes(long_lived)
end

local words = { "allocate", "release", "page", "arena", "slab", "magazine", "span", "class" }

local function record(number)
  local tags = {}
  for i = 1, 1 + random(6) do tags[i] = words[1 + random(#words)] .. random(1000) end
  return {
    id = number, name = words[1 + random(#words)] .. "-" .. number,
    price = random(100000) / 4, tags = tags,
    owner = { first = words[1 + random(#words)], second = "of number " .. random(500) },
  }
end

local function quote(text) return '"' .. text:gsub('["\\]', "\\%0") .. '"' end

local function encode(value, out)
  if type(value) == "number" then
    out[#out + 1] = tostring(value)
  elseif type(value) == "string" then
    out[#out + 1] = quote(value)
  elseif value[1] then
    out[#out + 1] = "["
    for i, item in ipairs(value) do
      if i > 1 then out[#out + 1] = "," end
      encode(item, out)
    end
    out[#out + 1] = "]"
  else
    out[#out + 1] = "{"
    local first = true
    for _, key in ipairs({ "first", "id", "name", "owner", "price", "second", "tags" }) do
      if value[key] ~= nil then
        out[#out + 1] = (first and "" or ",") .. quote(key) .. ":"
        encode(value[key], out)
        first = false
      end
    end
    out[#out + 1] = "}"
  end
end

local decode

local function decode_list(text, at)
  local list = {}
  while text:sub(at, at) ~= "]" do
    list[#list + 1], at = decode(text, text:sub(at, at) == "," and at + 1 or at)
  end
  return list, at + 1
end

local function decode_record(text, at)
  local fields = {}
  while text:sub(at, at) ~= "}" do
    local key, value
    key, at = decode(text, text:sub(at, at) == "," and at + 1 or at)
    value, at = decode(text, at + 1)
    fields[key] = value
  end
  return fields, at + 1
end

function decode(text, at)
  local first = text:sub(at, at)
  if first == "{" then return decode_record(text, at + 1) end
  if first == "[" then return decode_list(text, at + 1) end
  if first == '"' then
    local last = text:find('"', at + 1, true)
    return text:sub(at + 1, last - 1), last + 1
  end
  local number, after = text:match("^([-%d.e]+)()", at)
  return tonumber(number), after
end

local function documents()
  local sum = 0
  for batch = 1, 6 do
    local records = {}
    for i = 1, 400 do records[i] = record(batch * 1000 + i) end
    local out = {}
    encode(records, out)
    local text = table.concat(out)
    local back = decode(text, 1)
    table.sort(back, function(one, other)
      if one.price ~= other.price then return one.price < other.price end
      return one.id < other.id
    end)
    sum = sum + #text + #back + back[1].id
  end
  return sum
end

local function strings()
  local lines, length = {}, 0
  for i = 1, 6000 do
    local line = ("%s %d %s"):format(words[1 + random(#words)], i, words[1 + random(#words)]):rep(3, "; ")
    lines[#lines + 1] = line:upper()
    if #lines == 200 then
      local text = table.concat(lines, "\n")
      for word in text:gmatch("%a+") do length = length + #word end
      lines = {}
    end
  end
  return length
end

local function closures()
  local functions, sum = {}, 0
  for i = 1, 30000 do
    local step = random(9)
    functions[1 + random(2000)] = function(x) return x + step end
    local f = functions[1 + random(2000)]
    if f then sum = f(sum) % 1000003 end
  end
  return sum
end

local totals = { 0, 0, 0, 0 }
for _ = 1, repetitions do
  for place, part in ipairs({ trees, documents, strings, closures }) do
    totals[place] = totals[place] + part()
  end
end
print(("trees %d documents %d strings %d closures %d"):format(table.unpack(totals)))
