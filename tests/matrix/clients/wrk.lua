-- Carries out what wrk.py prepared: requests out of one file, answers into another.
local list, answers, at, called, got, stop = {}, nil, 0, 0, 0, 0

function init(args)
	local f = io.open(args[1], "rb")
	while true do
		local n = f:read("*n")
		if not n then break end
		f:read(1)
		list[#list + 1] = f:read(n)
	end
	f:close()
	answers = io.open(args[2], "wb")
	stop = tonumber(args[3])
end

function request()
	called = called + 1
	if called == 1 then return list[1] end	-- only to be looked at
	at = at % #list + 1
	return list[at]
end

function response(status, headers, body)
	got = got + 1
	if got > stop then return end
	answers:write(status, "\n")
	for name, value in pairs(headers) do answers:write(name, ": ", value, "\n") end
	answers:write("\n", #body, "\n", body)
	if got == stop then
		answers:close()
		os.exit(0)
	end
end
