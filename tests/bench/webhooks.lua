-- wrk's side of the intake measurement: one signed body, a fresh delivery GUID with each request.
-- arguments: FILE with the body, its X-Hub-Signature-256, the path, a number to seed the GUIDs with, and how many
-- requests to send at most (0: as many as there is time for).
-- Ends with one JSON line.
local threads = 0

function setup(thread)
	threads = threads + 1
	thread:set("thread_number", threads)
end

function init(args)
	local file = assert(io.open(args[1], "rb"))
	local body = file:read("*a")
	file:close()
	math.randomseed(tonumber(args[4]) * 100 + thread_number)
	for _ = 1, 10 do math.random() end
	before = "POST " .. args[3] .. " HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: GitHub-Hookshot/bench\r\n"
		.. "Accept: */*\r\nContent-Type: application/json\r\nX-GitHub-Event: pull_request\r\nX-GitHub-Hook-ID: 42\r\n"
		.. "X-Hub-Signature-256: " .. args[2] .. "\r\nContent-Length: " .. #body .. "\r\nX-GitHub-Delivery: "
	after = "\r\n\r\n" .. body
	local left = tonumber(args[5])
	if left > 0 then -- only then: with it wrk reads each answer's headers
		function response()
			left = left - 1
			if left <= 0 then wrk.thread:stop() end
		end
	end
end

function request()
	return before .. string.format("%08x-%04x-4%03x-8%03x-%06x%06x", math.random(0, 4294967295), math.random(0, 65535),
		math.random(0, 4095), math.random(0, 4095), math.random(0, 16777215), math.random(0, 16777215)) .. after
end

function done(summary, latency, requests)
	io.write(string.format(
		'{"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,"max_us":%d,"refused":%d,"broken":%d}\n',
		summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
		summary.errors.status, summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
