-- Checks whether a container id belongs to CodeHub, by asking the engine for the container's name.
-- The gate does not let anyone rename a container, so the result stays true.

local ENGINE = "unix@" .. os.getenv("DOCKER_GATE_ENGINE")
local UUID = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"

local function is_own(body)
    -- Quotes inside other strings are escaped, so only the field itself matches.
    local kind, id = body:match('"Name":"/codehub%-(%l+)%-([%x%-]+)"')
    return (kind == "ws" or kind == "job") and id:match(UUID) ~= nil
end

core.register_action("check_container", { "http-req" }, function(txn)
    local id = txn:get_var("txn.id")
    local response = core.httpclient():get({ url = "http://docker/containers/" .. id .. "/json", dst = ENGINE })
    -- For an absent container, let the engine respond itself.
    local own = response.status == 404 or (response.status == 200 and is_own(response.body or ""))
    txn:set_var("txn.own", own)
end)
