-- What Apache answers by mod_lua.
local paths = {}

function paths.chunked(r)
	for i = 0, 19 do
		r:write(string.rep(string.char(97 + i), 1000))
		r:flush()
	end
end

function paths.slow(r)
	r.usleep(150000)
	r:write("slow, ")
	r:flush()
	r.usleep(150000)
	r:write("but whole\n")
end

function paths.headers(r)
	for name, value in pairs(r:headers_in_table()) do r:write(name .. ": " .. value .. "\r\n") end
end

function paths.bighead(r)
	r:write("big\n")
end

function paths.cut(r)
	r.headers_out["Content-Length"] = "100000"
	r.headers_out["Connection"] = "close"
	r:write(string.rep("x", 1000))
	r:flush()
end

function paths.status(r)
	r.status = tonumber(r.uri:match("(%d+)$"))
	if r.status ~= 204 then r:write("status\n") end
end

function handle(r)
	r.content_type = "text/plain"
	paths[r.uri:match("^/(%a+)")](r)
	return apache2.OK
end
