-- wrk's script for reading: GETs of addresses in turn, beginning at a random one.
-- arguments: a FILE with a path and query per line, in which each {n} becomes the number of the request; the pause after an answer, ms;
-- a seed.
-- It prints one JSON line at its end.
function init(args)
	math.randomseed(tonumber(args[3]))
	requests = {}
	for path in io.lines(args[1]) do
		requests[#requests + 1] = wrk.format("GET", path)
	end
	at = math.random(#requests)
	n = 0
	pause = tonumber(args[2])
end

function delay()
	return pause
end

function request()
	at = at % #requests + 1
	n = n + 1
	return (requests[at]:gsub("{n}", n))
end

function done(summary, latency)
	io.write(string.format(
		'{"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,"max_us":%d,"refused":%d,"broken":%d}\n',
		summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
		summary.errors.status, summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
