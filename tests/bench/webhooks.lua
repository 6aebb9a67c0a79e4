-- wrk's script for the intake measurement: signed bodies with a new delivery GUID for each request.
-- arguments: a FILE that lists bodies, a line each: its X-Hub-Signature-256 and its path; the URL's path; a number
-- to seed the GUIDs with.
-- It prints one JSON line at its end.
local threads = 0

function setup(thread)
	threads = threads + 1
	thread:set("thread_number", threads)
end

function init(args)
	math.randomseed(tonumber(args[3]) * 100 + thread_number)
	for _ = 1, 10 do math.random() end
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

function request()
	local i = #before == 1 and 1 or math.random(#before)
	return before[i] .. string.format("%08x-%04x-4%03x-8%03x-%06x%06x", math.random(0, 4294967295), math.random(0, 65535),
		math.random(0, 4095), math.random(0, 4095), math.random(0, 16777215), math.random(0, 16777215)) .. after[i]
end

function done(summary, latency, requests)
	io.write(string.format(
		'{"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,"max_us":%d,"refused":%d,"broken":%d}\n',
		summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
		summary.errors.status, summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
