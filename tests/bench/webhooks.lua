-- wrk's script for the intake measurement: signed bodies with a new delivery GUID for each request.
-- arguments: a FILE that lists bodies, a line each: its X-Hub-Signature-256 and its path; the URL's path; a number
-- to seed the GUIDs with; "random" for GUIDs of version 4. GitHub's are of version 1: they begin with the lower bits of the time.
-- It prints one JSON line at its end.
local threads = 0

function setup(thread)
	threads = threads + 1
	thread:set("thread_number", threads)
end

function init(args)
	math.randomseed(tonumber(args[3]) * 100 + thread_number)
	for _ = 1, 10 do math.random() end
	is_random = args[4] == "random"
	node = string.format("%04x-%012x", 0x8000 + math.random(0, 0x3fff), math.random(0, 2 ^ 47))
	-- 100 ns since 1582, in 2^32 and the rest: a number of Lua has 53 bits
	local seconds = os.time() + 12219292800
	ticks_high = math.floor(seconds / 429.4967296)
	ticks_low = math.floor((seconds - ticks_high * 429.4967296) * 1e7)
	before, after = {}, {}
	for line in io.lines(args[1]) do
		local signature, path = line:match("^(%S+) (.+)$")
		local file = assert(io.open(path, "rb"))
		local body = file:read("*a")
		file:close()
		before[#before + 1] = "POST " .. args[2] .. " HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: GitHub-Hookshot/bench\r\n"
			.. "Accept: */*\r\nContent-Type: application/json\r\nX-GitHub-Event: pull_request\r\nX-GitHub-Hook-ID: 42\r\n"
			.. "X-Hub-Signature-256: " .. signature .. "\r\nContent-Length: " .. #body .. "\r\nX-GitHub-Delivery: "
		after[#after + 1] = "\r\n\r\n" .. body
	end
end

local function guid()
	if is_random then
		return string.format("%08x-%04x-4%03x-8%03x-%06x%06x", math.random(0, 4294967295), math.random(0, 65535),
			math.random(0, 4095), math.random(0, 4095), math.random(0, 16777215), math.random(0, 16777215))
	end
	ticks_low = ticks_low + math.random(1, 1000)
	if ticks_low >= 2 ^ 32 then
		ticks_low, ticks_high = ticks_low - 2 ^ 32, ticks_high + 1
	end
	return string.format("%08x-%04x-1%03x-%s", ticks_low, ticks_high % 65536, math.floor(ticks_high / 65536), node)
end

function request()
	local i = #before == 1 and 1 or math.random(#before)
	return before[i] .. guid() .. after[i]
end

function done(summary, latency, requests)
	io.write(string.format(
		'{"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,"max_us":%d,"refused":%d,"broken":%d}\n',
		summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
		summary.errors.status, summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
