// Made from openapi.json by `npm run docs`.
/** The endpoints of the admin API, by their paths. */
export interface paths {
    "/admin/v1/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the session of this browser */
        get: operations["getSession"];
        put?: never;
        /**
         * Sign in with a token
         * @description Sets a cookie that only this host gets. A session ends after 8 hours without a request, or after 7 days.
         */
        post: operations["signIn"];
        /**
         * Sign out
         * @description Ends the session of this browser.
         */
        delete: operations["signOut"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/oidc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get whether there is single sign-on */
        get: operations["getSingleSignOn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/oidc/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sign in by single sign-on, in a browser */
        get: operations["startSingleSignOn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/oidc/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Where the provider sends the browser back to
         * @description Begins a session that ends after 8 hours, and shows a page that leads to the console; for a request of a client, to the page where it is confirmed.
         */
        get: operations["finishSingleSignOn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/teams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List teams, newest first */
        get: operations["listTeams"];
        put?: never;
        /** Create a team */
        post: operations["createTeam"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/teams/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a team */
        get: operations["getTeam"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Rename, disable or enable a team
         * @description Leads of the team may change `self_service` only.
         */
        patch: operations["changeTeam"];
        trace?: never;
    };
    "/admin/v1/groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List groups, newest first */
        get: operations["listGroups"];
        put?: never;
        /** Create a group */
        post: operations["createGroup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/groups/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a group */
        get: operations["getGroup"];
        put?: never;
        post?: never;
        /**
         * Remove a group that has no teams
         * @description A group with teams gets 409: first take them out of it.
         */
        delete: operations["removeGroup"];
        options?: never;
        head?: never;
        /** Rename a group, or choose its teams */
        patch: operations["changeGroup"];
        trace?: never;
    };
    "/admin/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List keys, newest first */
        get: operations["listKeys"];
        put?: never;
        /**
         * Create a key
         * @description The response contains the secret, which is never shown again, unless `secret` is false.
         */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/keys/allowance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get which keys the team lets you create for yourself, and how many you have
         * @description For members of a team. 403 if the team lets its members create none.
         */
        get: operations["getKeyAllowance"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/keys/counts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Count the keys of each team by status */
        get: operations["countKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a key */
        get: operations["getKey"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change a key
         * @description Only the name of a revoked key can be changed, so that another key can take it. Leads change keys of their teams, within the limits of the team.
         */
        patch: operations["changeKey"];
        trace?: never;
    };
    "/admin/v1/keys/{id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate a key
         * @description Adds a new secret. The previous one stops working after `grace_seconds`. At most two secrets of a key work: one that is still in an earlier grace stops working at once, and `ended_secrets` names it. The response contains the new secret, which is never shown again. Members of a team may create and rotate keys of their own 20 times an hour.
         */
        post: operations["rotateKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/keys/{id}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revoke a key permanently, with all its secrets
         * @description Takes effect on every replica within one second. Idempotent: revoking again returns the same result.
         */
        post: operations["revokeKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/keys/find": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Find the key that a leaked secret or token belongs to
         * @description Also finds revoked keys, rotated secrets, and tokens for a day after they end, unless their trust was deleted. The response does not contain the secret.
         */
        post: operations["findKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/trusts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List trusts, newest first */
        get: operations["listTrusts"];
        put?: never;
        /**
         * Create a trust
         * @description Create trusts once all replicas run a version that knows them.
         */
        post: operations["createTrust"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/trusts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a trust */
        get: operations["getTrust"];
        put?: never;
        post?: never;
        /** Remove a trust, and end all of its tokens */
        delete: operations["removeTrust"];
        options?: never;
        head?: never;
        /**
         * Change, disable or enable a trust
         * @description Disabling a trust stops all of its tokens, on every replica within one second. Those that have not expired work again once it is enabled: to end them, rotate the key or delete the trust.
         */
        patch: operations["changeTrust"];
        trace?: never;
    };
    "/admin/v1/trusts/{id}/failures": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the last tokens that a trust has not accepted, newest first
         * @description Only of tokens that the issuer of the trust has signed. Others are counted in the metrics.
         */
        get: operations["listTrustFailures"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/trusts/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Hold an identity token against a trust, check by check
         * @description Issues nothing. The networks of the trust are not checked.
         */
        post: operations["testTrust"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/keys/{id}/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the tokens of a key that work now, newest first, and the trusts that issue them
         * @description Members and leads of teams get the tokens of their own sign-ins only.
         */
        get: operations["listKeyTokens"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/people": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List people, newest first */
        get: operations["listPeople"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/people/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a person, with their keys and sign-ins */
        get: operations["getPerson"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/people/{id}/end": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End a person who leaves
         * @description They cannot sign in any more, their sessions of the console and sign-ins from clients end, and their own keys are revoked, on every replica within one second. Repeat it at will.
         */
        post: operations["endPerson"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/people/{id}/reopen": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let a person sign in again
         * @description This includes teams where their key of sign-ins was revoked. Keys that were revoked stay revoked.
         */
        post: operations["reopenPerson"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/people/{id}/forget": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remove the name and e-mail address of a person who was ended
         * @description In the person, the names of their keys, the request log, the audit log and stored alerts. Their ID at the provider stays, so that they stay ended.
         */
        post: operations["forgetPerson"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/sign-ins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List sign-ins from clients, newest first
         * @description Members and leads of teams get their own only. Ended ones are deleted after 90 days.
         */
        get: operations["listSignIns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/sign-ins/setup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get what computers need for sign-ins from clients
         * @description Connects to `gateway_url` to read its certificate.
         */
        get: operations["getClientSetup"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/sign-ins/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End a sign-in from a client
         * @description Its tokens stop working on every replica within one second. Whoever is no administrator ends their own only.
         */
        delete: operations["endSignIn"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List all providers, without their secrets
         * @description Leads see those of their teams.
         */
        get: operations["listProviders"];
        put?: never;
        /** Add a provider */
        post: operations["createProvider"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/providers/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a provider */
        get: operations["getProvider"];
        put?: never;
        post?: never;
        /** Remove a provider and its secret */
        delete: operations["removeProvider"];
        options?: never;
        head?: never;
        /**
         * Change a provider
         * @description A URL on another host needs the secret again, so that the stored one is never sent elsewhere. Leads may replace the secret of a provider of their team, and change nothing else.
         */
        patch: operations["changeProvider"];
        trace?: never;
    };
    "/admin/v1/providers/{name}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Request the model list of a provider and report what is wrong
         * @description The status is 200 also when the provider fails: the body has the result.
         */
        post: operations["testProvider"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/routes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List all routes */
        get: operations["listRoutes"];
        put?: never;
        /**
         * Add a route
         * @description Its name must not be the name of a provider.
         */
        post: operations["createRoute"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/routes/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a route */
        get: operations["getRoute"];
        put?: never;
        post?: never;
        /** Remove a route */
        delete: operations["removeRoute"];
        options?: never;
        head?: never;
        /** Change a route */
        patch: operations["changeRoute"];
        trace?: never;
    };
    "/admin/v1/requests/recorded": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List forwarded calls in the order in which they were written to the database
         * @description For following the log: a call is written when it has ended. Continue after the last row with its `recorded_at` and `id`. Rows recorded after `recorded_until` may still be preceded by rows that are being written.
         */
        get: operations["listRecordedRequests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List forwarded calls, newest first */
        get: operations["listRequests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/requests/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export all rows as one stream of any length
         * @description One object per line (`ndjson`, each a Request) or a table (`csv`). For an incremental export, send `x-recorded-until` of the response as `recorded_after` of the next export, and keep the last row of each ID. If the connection breaks before the end of the response, discard what was received. The response is compressed if the client accepts gzip. A token can run two exports at a time; one whose client reads nothing for a minute is broken off.
         */
        get: operations["exportRequests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/requests/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a forwarded call */
        get: operations["getRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sum calls, errors, tokens, costs and bytes by group, newest period first */
        get: operations["getUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/usage/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export the sums of all groups as a table for spreadsheets
         * @description Comma-separated values (RFC 4180), at most 50,000 groups: the time zone and range, the month if the range is in one, the groups with their IDs, exact costs, the calls that they leave out, and tokens by what they cost.
         */
        get: operations["exportUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/usage/statement": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get what a team has used in a month
         * @description As it is counted now: late rows and `reprice` change it. By key, provider and model, the dearest first.
         */
        get: operations["getStatement"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Find calls, teams, keys, models, end users and sessions
         * @description Finds teams and keys by parts of their names in any case, and models of the last 30 days; calls, teams and keys by their IDs; keys by their first characters. IDs of providers, end users and sessions must be whole; the request log has no index for them, so it is read from its end for two seconds at most, until one is found. `log.from` says how far; send it as `before` to continue. Members of a team find what their teams have.
         */
        get: operations["search"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/refusals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the rejected requests by group, the largest first
         * @description Those of the last 24 hours without `from` and `to`.
         */
        get: operations["listRefusals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List jobs, the newest first */
        get: operations["listJobs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/jobs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a job, by the ID of the call that created it */
        get: operations["getJob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/jobs/{id}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask the provider for a job within some seconds
         * @description Also for one whose usage was given up as unknown.
         */
        post: operations["checkJob"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List limits and budgets with their use */
        get: operations["listLimits"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/limits/installation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the limits of the installation
         * @description Limits and budgets that all calls through this gateway share.
         */
        get: operations["getInstallationLimits"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change the limits of the installation
         * @description Members that are absent stay as they are.
         */
        patch: operations["changeInstallationLimits"];
        trace?: never;
    };
    "/admin/v1/limits/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Try budgets on the calls of the last 7 days
         * @description Says how many of them the budgets would have rejected. Stores nothing.
         */
        post: operations["previewLimits"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/limits/{id}/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reset a budget
         * @description Gives a budget its whole amount again for the rest of its period. What was spent stays recorded.
         */
        post: operations["resetLimit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/prices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List prices, newest first */
        get: operations["listPrices"];
        put?: never;
        /**
         * Set a price
         * @description Custom prices come before the catalog. Rows without a cost of the last 7 days get theirs within minutes; for all others use `reprice`.
         */
        post: operations["createPrice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/prices/resolve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show which price applies to a call, and why */
        get: operations["resolvePrice"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/prices/missing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List models that were called this month, or in the last 7 days, and have no price
         * @description Read from the sums of usage, which have a call within 10 seconds.
         */
        get: operations["listMissingPrices"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/prices/reprice": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Compute the costs of stored calls again
         * @description With the prices of now, as of the start of each call. Costs that the provider reported stay. A request works for about 10 seconds; if `next_cursor` is not null, send it again with that `cursor`, and add up the results. Commits every 5,000 rows, so that it can be interrupted and repeated; `dry_run` changes nothing.
         */
        post: operations["reprice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/prices/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a price, such as the one of a call (`price_id`) */
        get: operations["getPrice"];
        put?: never;
        post?: never;
        /** Remove a custom price */
        delete: operations["removePrice"];
        options?: never;
        head?: never;
        /**
         * Change a custom price
         * @description Stored calls keep their cost until they are repriced.
         */
        patch: operations["changePrice"];
        trace?: never;
    };
    "/admin/v1/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List all webhooks with their last delivery */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Create a webhook
         * @description The response contains the secret that verifies signatures. It is not shown again.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/webhooks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a webhook */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /** Remove a webhook with its undelivered events */
        delete: operations["removeWebhook"];
        options?: never;
        head?: never;
        /**
         * Change a webhook
         * @description Events that are not delivered yet go to the new URL.
         */
        patch: operations["changeWebhook"];
        trace?: never;
    };
    "/admin/v1/webhooks/{id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the deliveries of a webhook, newest event first */
        get: operations["listWebhookDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/webhooks/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send an event to a webhook again
         * @description With the same ID and body, within a few seconds, also if it was delivered before. It is repeated as a new event is.
         */
        post: operations["replayWebhookEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/webhooks/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send an event of type webhook.test and report what is wrong
         * @description The status is 200 also when the receiver fails: the body has the result. It is not repeated.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List all policies */
        get: operations["listPolicies"];
        put?: never;
        /**
         * Create a policy
         * @description Calls are asked about at once. Create policies once all replicas run a version that knows them: others do not ask.
         */
        post: operations["createPolicy"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/policies/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a policy */
        get: operations["getPolicy"];
        put?: never;
        post?: never;
        /** Remove a policy */
        delete: operations["removePolicy"];
        options?: never;
        head?: never;
        /**
         * Change a policy
         * @description Earlier decisions count no longer.
         */
        patch: operations["changePolicy"];
        trace?: never;
    };
    "/admin/v1/policies/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask a policy about a call that is made up, and report what is wrong
         * @description The status is 200 also when the receiver fails: the body has the result. Nothing is forwarded, and the scope of the policy does not count.
         */
        post: operations["testPolicy"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Change the configuration to match a document
         * @description In one transaction: if anything is wrong, nothing is changed, and the response has every error.
         */
        post: operations["apply"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/sinks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List all sinks with their state */
        get: operations["listSinks"];
        put?: never;
        /**
         * Create a sink
         * @description Rows are sent from then on, the oldest first. See `state` and `last_error`.
         */
        post: operations["createSink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/sinks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a sink, by ID or name */
        get: operations["getSink"];
        put?: never;
        post?: never;
        /** Remove a sink; the rows that it has stay there */
        delete: operations["removeSink"];
        options?: never;
        head?: never;
        /**
         * Change, pause or resume a sink
         * @description It goes on with the row after the last one that it has.
         */
        patch: operations["changeSink"];
        trace?: never;
    };
    "/admin/v1/sinks/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send rows again
         * @description ClickHouse replaces the rows that it has. A stream gets new messages, and an HTTP receiver new requests.
         */
        post: operations["replaySink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List tokens of the admin API, newest first */
        get: operations["listTokens"];
        put?: never;
        /**
         * Create a token of the admin API
         * @description The response contains the token, which is never shown again. A token that a user of single sign-on creates expires after at most 90 days, and none outlives the token that created it.
         */
        post: operations["createToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke a token of the admin API
         * @description It stops working at once, on every replica, and the sessions that it began end.
         */
        delete: operations["revokeToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List sessions of the console, newest first */
        get: operations["listSessions"];
        put?: never;
        post?: never;
        /**
         * End all sessions of a user
         * @description They end at once, on every replica.
         */
        delete: operations["endSessions"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End a session
         * @description It ends at once, on every replica.
         */
        delete: operations["endSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/database/regressions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List losses of Postgres, newest first */
        get: operations["listDatabaseRegressions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/database/regressions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a loss of Postgres */
        get: operations["getDatabaseRegression"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/database/regressions/{id}/put-back": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Put back what processes have of a loss that waits for a decision
         * @description Every process begins within 2 seconds. Journals keep the last minutes only: see `JOURNAL_KEEP_MS`. One that waits for no decision, or was noticed before Postgres started the last time, gets 409.
         */
        post: operations["putBackDatabaseRegression"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/database/regressions/{id}/dismiss": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Put back nothing of a loss that waits for a decision
         * @description Keys, tokens, sessions and people whose end was lost are in force again. One that waits for no decision gets 409.
         */
        post: operations["dismissDatabaseRegression"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List changes and who made them, newest first */
        get: operations["listAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/oidc/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Where the OpenID provider says that somebody has signed out
         * @description OpenID Connect Back-Channel Logout 1.0: a form with `logout_token`. 400 has no reason; the log of the gateway has it.
         */
        post: operations["backChannelLogout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/self/v1/key": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show the key of this request, with the limits and budgets that apply to it */
        get: operations["getOwnKey"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/self/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sum the calls of the key of this request */
        get: operations["getOwnUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/self/v1/refusals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the rejected requests of the key of this request, by reason
         * @description Those of the last 24 hours without `from` and `to`.
         */
        get: operations["getOwnRefusals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/system": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show the state of this process and of the database */
        get: operations["getSystem"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/system/changelog": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Show what is new in this version and those before */
        get: operations["getChangelog"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/attention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what needs somebody: failing providers, spent budgets, expiring keys and others
         * @description Members of teams see what concerns the budgets and keys of their teams.
         */
        get: operations["getAttention"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Report that the process runs */
        get: operations["getLiveness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Report whether calls can be served */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the metrics in the Prometheus text format */
        get: operations["getMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
/** The schemas of the admin API. */
export interface components {
    schemas: {
        Error: {
            /** @description The error. */
            error: {
                /**
                 * @description What is wrong and how to fix it, in words.
                 * @example id: no team has this name or id; list the teams, or create it first
                 */
                message: string;
                /**
                 * @description Error code for programs, for example `invalid_request`, `not_found` or `conflict`.
                 * @example not_found
                 */
                code: string;
                /** @description One entry for each field that is wrong. */
                details: {
                    /**
                     * @description Name of the field.
                     * @example id
                     */
                    field: string;
                    /**
                     * @description What is wrong with it and how to fix it.
                     * @example no team has this name or id; list the teams, or create it first
                     */
                    message: string;
                }[];
            };
        };
        SessionState: {
            /** @description Null if nobody is signed in. */
            session: {
                /**
                 * @description Name of the user in the audit log.
                 * @example admin-token
                 */
                actor: string;
                /**
                 * @description The same user for good, whatever the name: `admin-token`, `token:<ID>` or `sso:<issuer>#<sub>`.
                 * @example sso:https://login.example.com#8f2c0a
                 */
                user_id: string;
                /**
                 * @description What the user may do.
                 * @enum {string}
                 */
                role: "admin" | "viewer" | "lead" | "team" | "metrics";
                /** @description Teams that a user of the role `team` may see; null: all. */
                teams: {
                    /**
                     * Format: uuid
                     * @description ID of the team.
                     * @example 01890a5d-ac96-774b-bcce-b302099a8057
                     */
                    id: string;
                    /**
                     * @description Name of the team.
                     * @example search
                     */
                    name: string;
                }[] | null;
                /**
                 * Format: date-time
                 * @description When the user signed in.
                 * @example 2026-01-31T12:00:00.000Z
                 */
                created_at: string;
                /**
                 * Format: date-time
                 * @description When the session ends at the latest.
                 * @example 2026-01-31T12:00:00.000Z
                 */
                expires_at: string;
            } | null;
            /**
             * @description Time zone of days and times that are shown: `REPORT_TIMEZONE`.
             * @example Europe/Berlin
             */
            time_zone: string;
        };
        /**
         * @example {
         *       "token": "pta_…"
         *     }
         */
        SignIn: {
            /**
             * @description ADMIN_TOKEN or a token of the admin API.
             * @example pta_…
             */
            token: string;
        };
        SingleSignOn: {
            /**
             * @description True if `GET /admin/v1/oidc/start` signs in by single sign-on.
             * @example true
             */
            enabled: boolean;
        };
        TeamPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Team"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Team: {
            /**
             * Format: uuid
             * @description ID of the team.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Unique name of the team.
             * @example search
             */
            name: string;
            /**
             * @description All keys of a disabled team are rejected.
             * @example false
             */
            disabled: boolean;
            /**
             * @description Name of its group; null for none. The teams of a group share its limits.
             * @example dev
             */
            group: string | null;
            /**
             * @description Names of the models that may be used, in which `*` stands for any characters; `[]` allows none, null allows all.
             * @example [
             *       "gpt-5*",
             *       "claude-haiku-*"
             *     ]
             */
            models: string[] | null;
            /**
             * @description Streams of chat completions without `stream_options.include_usage`: `as_sent` forwards them, `require` rejects them, `ask` adds it to the request body.
             * @enum {string}
             */
            stream_usage: "as_sent" | "require" | "ask";
            /**
             * @description Names of the providers and routes that keys of the team may use; lists of its keys can only narrow it. Null: those of the team, and all that belong to no team.
             * @example [
             *       "openai-search"
             *     ]
             */
            providers: string[] | null;
            /**
             * @description Provider or route that calls to `/v1` of the team go to, unless their key may use only one. Null: the default of all teams.
             * @example openai-search
             */
            default_provider: string | null;
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20
             *     }
             */
            limits: components["schemas"]["Limits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "models": null,
             *         "requests_per_minute": 600,
             *         "tokens_per_minute": null,
             *         "concurrent_requests": 20
             *       }
             *     ]
             */
            filtered_limits: components["schemas"]["FilteredLimits"][];
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month",
             *         "mode": "block",
             *         "alert_at": [],
             *         "unpriced": "reject",
             *         "reservation": "typical"
             *       }
             *     ]
             */
            budgets: components["schemas"]["Budget"][];
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20,
             *       "budgets": []
             *     }
             */
            each_end_user: components["schemas"]["EndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "requests_per_minute": null,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": null,
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session",
             *           "mode": "block",
             *           "alert_at": [],
             *           "unpriced": "reject",
             *           "reservation": "typical"
             *         }
             *       ]
             *     }
             */
            each_session: components["schemas"]["SessionLimits"] | null;
            /**
             * @description Who owns it, such as a person or a group. `GET /admin/v1/usage?group_by=owner` sums by it. Of a key: null for that of its team. Of a key with `self_service`, the member who created it: it cannot be changed then. Nobody gets a right by it.
             * @example jane@example.com
             */
            owner: string | null;
            /**
             * @description Whom to ask, such as a person or a channel. Of a key: null for that of its team.
             * @example #search-oncall
             */
            contact: string | null;
            /**
             * @description Who is charged. `GET /admin/v1/usage?group_by=cost_center` sums by it. Of a key: null for that of its team.
             * @example CC-4711
             */
            cost_center: string | null;
            /**
             * @description Free text, for people.
             * @example Nightly batch of the ranking model.
             */
            note: string | null;
            /**
             * @description Lets members of the team (role `team`) create, rotate and revoke keys of their own; null: they can only revoke them.
             * @example {
             *       "keys_per_user": 3,
             *       "max_days": 90,
             *       "budget_usd_per_month": "50",
             *       "providers": [
             *         "openai"
             *       ],
             *       "sign_in_within_days": null
             *     }
             */
            self_service: components["schemas"]["SelfService"] | null;
            /**
             * @description Lets members of the team sign in from a client, such as Claude Code, and says what their keys allow; null: they cannot. Changes apply to the keys that there are.
             * @example {
             *       "budget_usd_per_month": "50",
             *       "providers": [
             *         "anthropic"
             *       ],
             *       "endpoints": "inference",
             *       "token_minutes": 60,
             *       "days": 30
             *     }
             */
            sign_in: components["schemas"]["SignInSettings"] | null;
            /**
             * @description Settings that Claude Code gets from the gateway when a member of the team has signed in; null for none. Only settings that restrict it: others could run commands on the computers of people.
             * @example {
             *       "availableModels": [
             *         "sonnet",
             *         "haiku"
             *       ],
             *       "permissions": {
             *         "deny": [
             *           "WebFetch"
             *         ]
             *       }
             *     }
             */
            claude_code: components["schemas"]["ClaudeCodeSettings"] | null;
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /**
             * Format: date-time
             * @description When the team was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
        };
        Limits: {
            /**
             * @description Requests in any 60 seconds; null: unlimited.
             * @example 600
             */
            requests_per_minute: number | null;
            /**
             * @description Input and output tokens in any 60 seconds; null: unlimited.
             * @example 200000
             */
            tokens_per_minute: number | null;
            /**
             * @description Requests at the same time; null: unlimited.
             * @example 20
             */
            concurrent_requests: number | null;
        };
        FilteredLimits: {
            /**
             * @description Only calls to these providers count; null or absent: all.
             * @example [
             *       "openai"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description Only calls of these models count, as the provider gets their names, in any case; `*` stands for any characters. Null or absent: all.
             * @example [
             *       "claude-opus-*"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description Requests in any 60 seconds; null: unlimited.
             * @example 600
             */
            requests_per_minute: number | null;
            /**
             * @description Input and output tokens in any 60 seconds; null: unlimited.
             * @example 200000
             */
            tokens_per_minute: number | null;
            /**
             * @description Requests at the same time; null: unlimited.
             * @example 20
             */
            concurrent_requests: number | null;
        };
        Budget: {
            /**
             * @description Amount in USD. Either this or `tokens`.
             * @example 500.00
             */
            usd?: string;
            /**
             * @description Input and output tokens. Either this or `usd`.
             * @example 2000000
             */
            tokens?: number;
            /**
             * @description Days, weeks from Monday and months begin in `BUDGET_TIMEZONE`; `total` never ends. Budgets of `each_session` have `session`, no others.
             * @enum {string}
             */
            period: "day" | "week" | "month" | "total" | "session";
            /**
             * @description `block` rejects calls once the budget is spent; `warn` only counts.
             * @enum {string}
             */
            mode: "block" | "warn";
            /**
             * @description Percentages of the amount at which an alert is due.
             * @example [
             *       80,
             *       100
             *     ]
             */
            alert_at: number[];
            /**
             * @description Of budgets in USD: `reject` rejects calls of models without a price, whose cost is unknown; `allow` forwards them.
             * @enum {string}
             */
            unpriced: "reject" | "allow";
            /**
             * @description What a call reserves until its usage is known: `typical`, what such calls used lately; `worst`, the most that it can use, so that the budget is never exceeded.
             * @enum {string}
             */
            reservation: "typical" | "worst";
            /**
             * @description Only calls to these providers count; null or absent: all.
             * @example [
             *       "openai"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description Only calls of these models count, as the provider gets their names, in any case; `*` stands for any characters. Null or absent: all.
             * @example [
             *       "claude-opus-*"
             *     ]
             */
            models?: string[] | null;
        };
        EndUserLimits: {
            /**
             * @description Requests in any 60 seconds; null: unlimited.
             * @example 600
             */
            requests_per_minute: number | null;
            /**
             * @description Input and output tokens in any 60 seconds; null: unlimited.
             * @example 200000
             */
            tokens_per_minute: number | null;
            /**
             * @description Requests at the same time; null: unlimited.
             * @example 20
             */
            concurrent_requests: number | null;
            /**
             * @description At most 4 budgets of each end user.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month",
             *         "mode": "block",
             *         "alert_at": [],
             *         "unpriced": "reject",
             *         "reservation": "typical"
             *       }
             *     ]
             */
            budgets: components["schemas"]["Budget"][];
        };
        SessionLimits: {
            /**
             * @description Requests in any 60 seconds; null: unlimited.
             * @example 600
             */
            requests_per_minute: number | null;
            /**
             * @description Input and output tokens in any 60 seconds; null: unlimited.
             * @example 200000
             */
            tokens_per_minute: number | null;
            /**
             * @description Requests at the same time; null: unlimited.
             * @example 20
             */
            concurrent_requests: number | null;
            /**
             * @description At most 4 budgets of each session, in the period `session`.
             * @example [
             *       {
             *         "usd": "5.00",
             *         "period": "session",
             *         "mode": "block",
             *         "alert_at": [],
             *         "unpriced": "reject",
             *         "reservation": "typical"
             *       }
             *     ]
             */
            budgets: components["schemas"]["Budget"][];
        };
        SelfService: {
            /**
             * @description Keys that each member may have at a time.
             * @example 3
             */
            keys_per_user: number;
            /**
             * @description Longest lifetime of such a key, in days.
             * @example 90
             */
            max_days: number;
            /**
             * @description Budget of each such key in USD per month; null for none. With one, keys that ended in this month count too.
             * @example 50
             */
            budget_usd_per_month: string | null;
            /**
             * @description Names of the providers and routes that such keys may use: of those named when the key was created, the ones named now. Null: all that the team may use, also those added later.
             * @example [
             *       "openai"
             *     ]
             */
            providers: string[] | null;
            /**
             * @description Such a key stops working so many days after its owner last signed in by single sign-on as a member or lead of the team, and works again when they do, until its `latest_expiry`. Keys that there are get so many days. Keys of named tokens, whose holders do not sign in, are not concerned. Null: keys need no sign-in.
             * @example 14
             */
            sign_in_within_days: number | null;
        };
        SignInSettings: {
            /**
             * @description Budget of each such key in USD per month; null for none. The key of a person stays when they sign in again.
             * @example 50
             */
            budget_usd_per_month: string | null;
            /**
             * @description Names of the providers and routes that such keys may use; null: all that the team may use, also those added later.
             * @example [
             *       "anthropic"
             *     ]
             */
            providers: string[] | null;
            /**
             * @description `inference`: such keys may use the inference endpoints only; `own`: every endpoint at providers of the team; `all`: every endpoint.
             * @example inference
             * @enum {string}
             */
            endpoints: "inference" | "own" | "all";
            /**
             * @description Lifetime of a token in minutes. Clients renew it by themselves.
             * @example 60
             */
            token_minutes: number;
            /**
             * @description After how many days a person must sign in again.
             * @example 30
             */
            days: number;
        };
        ClaudeCodeSettings: {
            /**
             * @description The models that people may choose.
             * @example [
             *       "sonnet",
             *       "haiku"
             *     ]
             */
            availableModels?: string[];
            /**
             * @description Whether these are the only models that Claude Code uses.
             * @example true
             */
            enforceAvailableModels?: boolean;
            /**
             * @description The model that a session begins with.
             * @example sonnet
             */
            model?: string;
            /**
             * @description Rules for the tools of Claude Code.
             * @example {
             *       "deny": [
             *         "WebFetch"
             *       ]
             *     }
             */
            permissions?: {
                /**
                 * @description Uses of tools that are denied.
                 * @example [
                 *       "WebFetch"
                 *     ]
                 */
                deny?: string[];
                /**
                 * @description Uses of tools that a person is asked about.
                 * @example [
                 *       "Bash(git push:*)"
                 *     ]
                 */
                ask?: string[];
                /**
                 * @description `disable`: nobody can switch the rules off.
                 * @example disable
                 * @enum {string}
                 */
                disableBypassPermissionsMode?: "disable";
            };
        };
        /**
         * @example {
         *       "name": "search"
         *     }
         */
        NewTeam: {
            /**
             * @description Unique name of the team.
             * @example search
             */
            name: string;
            /**
             * @description Name or ID of its group; null for none. A team is in at most one group.
             * @default null
             * @example dev
             */
            group?: string | null;
            /**
             * @description Names of the models that may be used, in which `*` stands for any characters; `[]` allows none, null allows all.
             * @example [
             *       "gpt-5*",
             *       "claude-haiku-*"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description Streams of chat completions without `stream_options.include_usage`: `as_sent` forwards them, `require` rejects them, `ask` adds it to the request body.
             * @default as_sent
             * @enum {string}
             */
            stream_usage?: "as_sent" | "require" | "ask";
            /**
             * @description Names of the providers and routes that keys of the team may use; lists of its keys can only narrow it. Null: those of the team, and all that belong to no team.
             * @example [
             *       "openai-search"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description Provider or route that calls to `/v1` of the team go to, unless their key may use only one. Null: the default of all teams.
             * @example openai-search
             */
            default_provider?: string | null;
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600
             *     }
             */
            limits?: components["schemas"]["NewLimits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "requests_per_minute": 60
             *       }
             *     ]
             */
            filtered_limits?: components["schemas"]["NewFilteredLimits"][] | null;
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewBudget"][] | null;
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20
             *     }
             */
            each_end_user?: components["schemas"]["NewEndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session"
             *         }
             *       ]
             *     }
             */
            each_session?: components["schemas"]["NewSessionLimits"] | null;
            /**
             * @description Who owns it, such as a person or a group. `GET /admin/v1/usage?group_by=owner` sums by it. Of a key: null for that of its team. Of a key with `self_service`, the member who created it: it cannot be changed then. Nobody gets a right by it.
             * @default null
             * @example jane@example.com
             */
            owner?: string | null;
            /**
             * @description Whom to ask, such as a person or a channel. Of a key: null for that of its team.
             * @default null
             * @example #search-oncall
             */
            contact?: string | null;
            /**
             * @description Who is charged. `GET /admin/v1/usage?group_by=cost_center` sums by it. Of a key: null for that of its team.
             * @default null
             * @example CC-4711
             */
            cost_center?: string | null;
            /**
             * @description Free text, for people.
             * @default null
             * @example Nightly batch of the ranking model.
             */
            note?: string | null;
            /**
             * @description Lets members of the team (role `team`) create, rotate and revoke keys of their own; null: they can only revoke them.
             * @example {
             *       "keys_per_user": 3,
             *       "max_days": 90,
             *       "budget_usd_per_month": "50",
             *       "providers": [
             *         "openai"
             *       ],
             *       "sign_in_within_days": null
             *     }
             */
            self_service?: components["schemas"]["NewSelfService"] | null;
            /**
             * @description Lets members of the team sign in from a client, such as Claude Code, and says what their keys allow; null: they cannot. Changes apply to the keys that there are.
             * @example {
             *       "budget_usd_per_month": "50",
             *       "providers": [
             *         "anthropic"
             *       ],
             *       "endpoints": "inference",
             *       "token_minutes": 60,
             *       "days": 30
             *     }
             */
            sign_in?: components["schemas"]["NewSignInSettings"] | null;
            /**
             * @description Settings that Claude Code gets from the gateway when a member of the team has signed in; null for none. Only settings that restrict it: others could run commands on the computers of people.
             * @example {
             *       "availableModels": [
             *         "sonnet",
             *         "haiku"
             *       ],
             *       "permissions": {
             *         "deny": [
             *           "WebFetch"
             *         ]
             *       }
             *     }
             */
            claude_code?: components["schemas"]["NewClaudeCodeSettings"] | null;
        };
        /**
         * @example {
         *       "requests_per_minute": 600
         *     }
         */
        NewLimits: {
            /**
             * @description Requests in any 60 seconds; null: unlimited.
             * @default null
             * @example 600
             */
            requests_per_minute?: number | null;
            /**
             * @description Input and output tokens in any 60 seconds; null: unlimited.
             * @default null
             * @example 200000
             */
            tokens_per_minute?: number | null;
            /**
             * @description Requests at the same time; null: unlimited.
             * @default null
             * @example 20
             */
            concurrent_requests?: number | null;
        };
        /**
         * @example {
         *       "providers": [
         *         "openai"
         *       ],
         *       "requests_per_minute": 60
         *     }
         */
        NewFilteredLimits: {
            /**
             * @description Only calls to these providers count; null or absent: all.
             * @example [
             *       "openai"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description Only calls of these models count, as the provider gets their names, in any case; `*` stands for any characters. Null or absent: all.
             * @example [
             *       "claude-opus-*"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description Requests in any 60 seconds; null: unlimited.
             * @default null
             * @example 600
             */
            requests_per_minute?: number | null;
            /**
             * @description Input and output tokens in any 60 seconds; null: unlimited.
             * @default null
             * @example 200000
             */
            tokens_per_minute?: number | null;
            /**
             * @description Requests at the same time; null: unlimited.
             * @default null
             * @example 20
             */
            concurrent_requests?: number | null;
        };
        /**
         * @example {
         *       "usd": "500.00",
         *       "period": "month"
         *     }
         */
        NewBudget: {
            /**
             * @description Amount in USD. Either this or `tokens`.
             * @example 500.00
             */
            usd?: string;
            /**
             * @description Input and output tokens. Either this or `usd`.
             * @example 2000000
             */
            tokens?: number;
            /**
             * @description Days, weeks from Monday and months begin in `BUDGET_TIMEZONE`; `total` never ends. Budgets of `each_session` have `session`, no others.
             * @enum {string}
             */
            period: "day" | "week" | "month" | "total" | "session";
            /**
             * @description `block` rejects calls once the budget is spent; `warn` only counts.
             * @default block
             * @enum {string}
             */
            mode?: "block" | "warn";
            /**
             * @description Percentages of the amount at which an alert is due.
             * @default []
             * @example [
             *       80,
             *       100
             *     ]
             */
            alert_at?: number[];
            /**
             * @description Of budgets in USD: `reject` rejects calls of models without a price, whose cost is unknown; `allow` forwards them.
             * @default reject
             * @enum {string}
             */
            unpriced?: "reject" | "allow";
            /**
             * @description What a call reserves until its usage is known: `typical`, what such calls used lately; `worst`, the most that it can use, so that the budget is never exceeded.
             * @default typical
             * @enum {string}
             */
            reservation?: "typical" | "worst";
            /**
             * @description Only calls to these providers count; null or absent: all.
             * @example [
             *       "openai"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description Only calls of these models count, as the provider gets their names, in any case; `*` stands for any characters. Null or absent: all.
             * @example [
             *       "claude-opus-*"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description Of a budget that is new: `period` counts what was used since its day, week or month began, `now` does not. Those in total, of end users and of sessions count from now.
             * @example now
             * @enum {string}
             */
            count_from?: "period" | "now";
        };
        /**
         * @example {
         *       "requests_per_minute": 20
         *     }
         */
        NewEndUserLimits: {
            /**
             * @description Requests in any 60 seconds; null: unlimited.
             * @default null
             * @example 600
             */
            requests_per_minute?: number | null;
            /**
             * @description Input and output tokens in any 60 seconds; null: unlimited.
             * @default null
             * @example 200000
             */
            tokens_per_minute?: number | null;
            /**
             * @description Requests at the same time; null: unlimited.
             * @default null
             * @example 20
             */
            concurrent_requests?: number | null;
            /**
             * @description At most 4 budgets of each end user.
             * @example [
             *       {
             *         "usd": "2.00",
             *         "period": "day"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewBudget"][];
        };
        /**
         * @example {
         *       "requests_per_minute": 20
         *     }
         */
        NewSessionLimits: {
            /**
             * @description Requests in any 60 seconds; null: unlimited.
             * @default null
             * @example 600
             */
            requests_per_minute?: number | null;
            /**
             * @description Input and output tokens in any 60 seconds; null: unlimited.
             * @default null
             * @example 200000
             */
            tokens_per_minute?: number | null;
            /**
             * @description Requests at the same time; null: unlimited.
             * @default null
             * @example 20
             */
            concurrent_requests?: number | null;
            /**
             * @description At most 4 budgets of each session, in the period `session`.
             * @example [
             *       {
             *         "usd": "5.00",
             *         "period": "session"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewSessionBudget"][];
        };
        /**
         * @example {
         *       "usd": "500.00",
         *       "period": "month"
         *     }
         */
        NewSessionBudget: {
            /**
             * @description Amount in USD. Either this or `tokens`.
             * @example 500.00
             */
            usd?: string;
            /**
             * @description Input and output tokens. Either this or `usd`.
             * @example 2000000
             */
            tokens?: number;
            /**
             * @description Days, weeks from Monday and months begin in `BUDGET_TIMEZONE`; `total` never ends. Budgets of `each_session` have `session`, no others.
             * @enum {string}
             */
            period: "day" | "week" | "month" | "total" | "session";
            /**
             * @description `block` rejects calls once the budget is spent; `warn` only counts.
             * @default block
             * @enum {string}
             */
            mode?: "block" | "warn";
            /**
             * @description Percentages of the amount at which an alert is due.
             * @default []
             * @example [
             *       80,
             *       100
             *     ]
             */
            alert_at?: number[];
            /**
             * @description Of budgets in USD: `reject` rejects calls of models without a price, whose cost is unknown; `allow` forwards them.
             * @default reject
             * @enum {string}
             */
            unpriced?: "reject" | "allow";
            /**
             * @description What a call reserves until its usage is known: `typical`, what such calls used lately; `worst`, the most that it can use, so that the budget is never exceeded.
             * @default typical
             * @enum {string}
             */
            reservation?: "typical" | "worst";
            /**
             * @description Only calls to these providers count; null or absent: all.
             * @example [
             *       "openai"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description Only calls of these models count, as the provider gets their names, in any case; `*` stands for any characters. Null or absent: all.
             * @example [
             *       "claude-opus-*"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description Of a budget that is new: `period` counts what was used since its day, week or month began, `now` does not. Those in total, of end users and of sessions count from now.
             * @example now
             * @enum {string}
             */
            count_from?: "period" | "now";
        };
        /**
         * @example {
         *       "keys_per_user": 3,
         *       "max_days": 90,
         *       "budget_usd_per_month": "50",
         *       "providers": [
         *         "openai"
         *       ],
         *       "sign_in_within_days": null
         *     }
         */
        NewSelfService: {
            /**
             * @description Keys that each member may have at a time.
             * @example 3
             */
            keys_per_user: number;
            /**
             * @description Longest lifetime of such a key, in days.
             * @example 90
             */
            max_days: number;
            /**
             * @description Budget of each such key in USD per month; null for none. With one, keys that ended in this month count too.
             * @default null
             * @example 50
             */
            budget_usd_per_month?: string | null;
            /**
             * @description Names of the providers and routes that such keys may use: of those named when the key was created, the ones named now. Null: all that the team may use, also those added later.
             * @example [
             *       "openai"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description Such a key stops working so many days after its owner last signed in by single sign-on as a member or lead of the team, and works again when they do, until its `latest_expiry`. Keys that there are get so many days. Keys of named tokens, whose holders do not sign in, are not concerned. Null: keys need no sign-in.
             * @default null
             * @example 14
             */
            sign_in_within_days?: number | null;
        };
        /**
         * @example {
         *       "budget_usd_per_month": "50",
         *       "providers": [
         *         "anthropic"
         *       ],
         *       "endpoints": "inference",
         *       "token_minutes": 60,
         *       "days": 30
         *     }
         */
        NewSignInSettings: {
            /**
             * @description Budget of each such key in USD per month; null for none. The key of a person stays when they sign in again.
             * @default null
             * @example 50
             */
            budget_usd_per_month?: string | null;
            /**
             * @description Names of the providers and routes that such keys may use; null: all that the team may use, also those added later.
             * @example [
             *       "anthropic"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description `inference`: such keys may use the inference endpoints only; `own`: every endpoint at providers of the team; `all`: every endpoint.
             * @default inference
             * @example inference
             * @enum {string}
             */
            endpoints?: "inference" | "own" | "all";
            /**
             * @description Lifetime of a token in minutes. Clients renew it by themselves.
             * @default 60
             * @example 60
             */
            token_minutes?: number;
            /**
             * @description After how many days a person must sign in again.
             * @default 30
             * @example 30
             */
            days?: number;
        };
        /**
         * @example {
         *       "availableModels": [
         *         "sonnet",
         *         "haiku"
         *       ],
         *       "permissions": {
         *         "deny": [
         *           "WebFetch"
         *         ]
         *       }
         *     }
         */
        NewClaudeCodeSettings: {
            /**
             * @description The models that people may choose.
             * @example [
             *       "sonnet",
             *       "haiku"
             *     ]
             */
            availableModels?: string[];
            /**
             * @description Whether these are the only models that Claude Code uses.
             * @example true
             */
            enforceAvailableModels?: boolean;
            /**
             * @description The model that a session begins with.
             * @example sonnet
             */
            model?: string;
            /**
             * @description Rules for the tools of Claude Code.
             * @example {
             *       "deny": [
             *         "WebFetch"
             *       ]
             *     }
             */
            permissions?: {
                /**
                 * @description Uses of tools that are denied.
                 * @example [
                 *       "WebFetch"
                 *     ]
                 */
                deny?: string[];
                /**
                 * @description Uses of tools that a person is asked about.
                 * @example [
                 *       "Bash(git push:*)"
                 *     ]
                 */
                ask?: string[];
                /**
                 * @description `disable`: nobody can switch the rules off.
                 * @example disable
                 * @enum {string}
                 */
                disableBypassPermissionsMode?: "disable";
            };
        };
        /**
         * @example {
         *       "disabled": true
         *     }
         */
        TeamChange: {
            /**
             * @description New unique name of the team.
             * @example search
             */
            name?: string;
            /** @description All keys of a disabled team are rejected. */
            disabled?: boolean;
            /**
             * @description Name or ID of its group; null for none. A team is in at most one group.
             * @example dev
             */
            group?: string | null;
            /**
             * @description Names of the models that may be used, in which `*` stands for any characters; `[]` allows none, null allows all.
             * @example [
             *       "gpt-5*",
             *       "claude-haiku-*"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description Streams of chat completions without `stream_options.include_usage`: `as_sent` forwards them, `require` rejects them, `ask` adds it to the request body.
             * @enum {string}
             */
            stream_usage?: "as_sent" | "require" | "ask";
            /**
             * @description Names of the providers and routes that keys of the team may use; lists of its keys can only narrow it. Null: those of the team, and all that belong to no team.
             * @example [
             *       "openai-search"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description Provider or route that calls to `/v1` of the team go to, unless their key may use only one. Null: the default of all teams.
             * @example openai-search
             */
            default_provider?: string | null;
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600
             *     }
             */
            limits?: components["schemas"]["NewLimits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "requests_per_minute": 60
             *       }
             *     ]
             */
            filtered_limits?: components["schemas"]["NewFilteredLimits"][] | null;
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewBudget"][] | null;
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20
             *     }
             */
            each_end_user?: components["schemas"]["NewEndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session"
             *         }
             *       ]
             *     }
             */
            each_session?: components["schemas"]["NewSessionLimits"] | null;
            /**
             * @description Who owns it, such as a person or a group. `GET /admin/v1/usage?group_by=owner` sums by it. Of a key: null for that of its team. Of a key with `self_service`, the member who created it: it cannot be changed then. Nobody gets a right by it.
             * @example jane@example.com
             */
            owner?: string | null;
            /**
             * @description Whom to ask, such as a person or a channel. Of a key: null for that of its team.
             * @example #search-oncall
             */
            contact?: string | null;
            /**
             * @description Who is charged. `GET /admin/v1/usage?group_by=cost_center` sums by it. Of a key: null for that of its team.
             * @example CC-4711
             */
            cost_center?: string | null;
            /**
             * @description Free text, for people.
             * @example Nightly batch of the ranking model.
             */
            note?: string | null;
            /**
             * @description Lets members of the team (role `team`) create, rotate and revoke keys of their own; null: they can only revoke them.
             * @example {
             *       "keys_per_user": 3,
             *       "max_days": 90,
             *       "budget_usd_per_month": "50",
             *       "providers": [
             *         "openai"
             *       ],
             *       "sign_in_within_days": null
             *     }
             */
            self_service?: components["schemas"]["NewSelfService"] | null;
            /**
             * @description Lets members of the team sign in from a client, such as Claude Code, and says what their keys allow; null: they cannot. Changes apply to the keys that there are.
             * @example {
             *       "budget_usd_per_month": "50",
             *       "providers": [
             *         "anthropic"
             *       ],
             *       "endpoints": "inference",
             *       "token_minutes": 60,
             *       "days": 30
             *     }
             */
            sign_in?: components["schemas"]["NewSignInSettings"] | null;
            /**
             * @description Settings that Claude Code gets from the gateway when a member of the team has signed in; null for none. Only settings that restrict it: others could run commands on the computers of people.
             * @example {
             *       "availableModels": [
             *         "sonnet",
             *         "haiku"
             *       ],
             *       "permissions": {
             *         "deny": [
             *           "WebFetch"
             *         ]
             *       }
             *     }
             */
            claude_code?: components["schemas"]["NewClaudeCodeSettings"] | null;
        };
        GroupPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Group"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Group: {
            /**
             * Format: uuid
             * @description ID of the group.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Unique name of the group.
             * @example dev
             */
            name: string;
            /**
             * @description Free text, for people.
             * @example Nightly batch of the ranking model.
             */
            note: string | null;
            /**
             * @description Names of its teams, sorted.
             * @example [
             *       "ranking",
             *       "search"
             *     ]
             */
            teams: string[];
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20
             *     }
             */
            limits: components["schemas"]["Limits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "models": null,
             *         "requests_per_minute": 600,
             *         "tokens_per_minute": null,
             *         "concurrent_requests": 20
             *       }
             *     ]
             */
            filtered_limits: components["schemas"]["FilteredLimits"][];
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month",
             *         "mode": "block",
             *         "alert_at": [],
             *         "unpriced": "reject",
             *         "reservation": "typical"
             *       }
             *     ]
             */
            budgets: components["schemas"]["Budget"][];
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20,
             *       "budgets": []
             *     }
             */
            each_end_user: components["schemas"]["EndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "requests_per_minute": null,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": null,
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session",
             *           "mode": "block",
             *           "alert_at": [],
             *           "unpriced": "reject",
             *           "reservation": "typical"
             *         }
             *       ]
             *     }
             */
            each_session: components["schemas"]["SessionLimits"] | null;
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /**
             * Format: date-time
             * @description When the group was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
        };
        /**
         * @example {
         *       "name": "dev",
         *       "teams": [
         *         "search",
         *         "ranking"
         *       ]
         *     }
         */
        NewGroup: {
            /**
             * @description Unique name of the group.
             * @example dev
             */
            name: string;
            /**
             * @description Free text, for people.
             * @default null
             * @example Nightly batch of the ranking model.
             */
            note?: string | null;
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600
             *     }
             */
            limits?: components["schemas"]["NewLimits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "requests_per_minute": 60
             *       }
             *     ]
             */
            filtered_limits?: components["schemas"]["NewFilteredLimits"][] | null;
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewSharedBudget"][] | null;
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20
             *     }
             */
            each_end_user?: components["schemas"]["NewSharedEndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session"
             *         }
             *       ]
             *     }
             */
            each_session?: components["schemas"]["NewSharedSessionLimits"] | null;
            /**
             * @description Its teams, by name or ID. A team that is in another group leaves it.
             * @default []
             * @example [
             *       "search",
             *       "ranking"
             *     ]
             */
            teams?: string[];
        };
        /**
         * @example {
         *       "usd": "500.00",
         *       "period": "month"
         *     }
         */
        NewSharedBudget: {
            /**
             * @description Amount in USD. Either this or `tokens`.
             * @example 500.00
             */
            usd?: string;
            /**
             * @description Input and output tokens. Either this or `usd`.
             * @example 2000000
             */
            tokens?: number;
            /**
             * @description Days, weeks from Monday and months begin in `BUDGET_TIMEZONE`; `total` never ends. Budgets of `each_session` have `session`, no others.
             * @enum {string}
             */
            period: "day" | "week" | "month" | "total" | "session";
            /**
             * @description `block` rejects calls once the budget is spent; `warn` only counts.
             * @default block
             * @enum {string}
             */
            mode?: "block" | "warn";
            /**
             * @description Percentages of the amount at which an alert is due.
             * @default []
             * @example [
             *       80,
             *       100
             *     ]
             */
            alert_at?: number[];
            /**
             * @description Of budgets in USD: `reject` rejects calls of models without a price, whose cost is unknown; `allow` forwards them.
             * @default allow
             * @enum {string}
             */
            unpriced?: "reject" | "allow";
            /**
             * @description What a call reserves until its usage is known: `typical`, what such calls used lately; `worst`, the most that it can use, so that the budget is never exceeded.
             * @default typical
             * @enum {string}
             */
            reservation?: "typical" | "worst";
            /**
             * @description Only calls to these providers count; null or absent: all.
             * @example [
             *       "openai"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description Only calls of these models count, as the provider gets their names, in any case; `*` stands for any characters. Null or absent: all.
             * @example [
             *       "claude-opus-*"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description Of a budget that is new: `period` counts what was used since its day, week or month began, `now` does not. Those in total, of end users and of sessions count from now.
             * @example now
             * @enum {string}
             */
            count_from?: "period" | "now";
        };
        /**
         * @example {
         *       "requests_per_minute": 20
         *     }
         */
        NewSharedEndUserLimits: {
            /**
             * @description Requests in any 60 seconds; null: unlimited.
             * @default null
             * @example 600
             */
            requests_per_minute?: number | null;
            /**
             * @description Input and output tokens in any 60 seconds; null: unlimited.
             * @default null
             * @example 200000
             */
            tokens_per_minute?: number | null;
            /**
             * @description Requests at the same time; null: unlimited.
             * @default null
             * @example 20
             */
            concurrent_requests?: number | null;
            /**
             * @description At most 4 budgets of each end user.
             * @example [
             *       {
             *         "usd": "2.00",
             *         "period": "day"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewSharedBudget"][];
        };
        /**
         * @example {
         *       "requests_per_minute": 20
         *     }
         */
        NewSharedSessionLimits: {
            /**
             * @description Requests in any 60 seconds; null: unlimited.
             * @default null
             * @example 600
             */
            requests_per_minute?: number | null;
            /**
             * @description Input and output tokens in any 60 seconds; null: unlimited.
             * @default null
             * @example 200000
             */
            tokens_per_minute?: number | null;
            /**
             * @description Requests at the same time; null: unlimited.
             * @default null
             * @example 20
             */
            concurrent_requests?: number | null;
            /**
             * @description At most 4 budgets of each session, in the period `session`.
             * @example [
             *       {
             *         "usd": "5.00",
             *         "period": "session"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewSharedSessionBudget"][];
        };
        /**
         * @example {
         *       "usd": "500.00",
         *       "period": "month"
         *     }
         */
        NewSharedSessionBudget: {
            /**
             * @description Amount in USD. Either this or `tokens`.
             * @example 500.00
             */
            usd?: string;
            /**
             * @description Input and output tokens. Either this or `usd`.
             * @example 2000000
             */
            tokens?: number;
            /**
             * @description Days, weeks from Monday and months begin in `BUDGET_TIMEZONE`; `total` never ends. Budgets of `each_session` have `session`, no others.
             * @enum {string}
             */
            period: "day" | "week" | "month" | "total" | "session";
            /**
             * @description `block` rejects calls once the budget is spent; `warn` only counts.
             * @default block
             * @enum {string}
             */
            mode?: "block" | "warn";
            /**
             * @description Percentages of the amount at which an alert is due.
             * @default []
             * @example [
             *       80,
             *       100
             *     ]
             */
            alert_at?: number[];
            /**
             * @description Of budgets in USD: `reject` rejects calls of models without a price, whose cost is unknown; `allow` forwards them.
             * @default allow
             * @enum {string}
             */
            unpriced?: "reject" | "allow";
            /**
             * @description What a call reserves until its usage is known: `typical`, what such calls used lately; `worst`, the most that it can use, so that the budget is never exceeded.
             * @default typical
             * @enum {string}
             */
            reservation?: "typical" | "worst";
            /**
             * @description Only calls to these providers count; null or absent: all.
             * @example [
             *       "openai"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description Only calls of these models count, as the provider gets their names, in any case; `*` stands for any characters. Null or absent: all.
             * @example [
             *       "claude-opus-*"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description Of a budget that is new: `period` counts what was used since its day, week or month began, `now` does not. Those in total, of end users and of sessions count from now.
             * @example now
             * @enum {string}
             */
            count_from?: "period" | "now";
        };
        /**
         * @example {
         *       "teams": [
         *         "search",
         *         "ranking"
         *       ]
         *     }
         */
        GroupChange: {
            /**
             * @description New unique name of the group.
             * @example dev
             */
            name?: string;
            /**
             * @description Free text, for people.
             * @example Nightly batch of the ranking model.
             */
            note?: string | null;
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600
             *     }
             */
            limits?: components["schemas"]["NewLimits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "requests_per_minute": 60
             *       }
             *     ]
             */
            filtered_limits?: components["schemas"]["NewFilteredLimits"][] | null;
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewSharedBudget"][] | null;
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20
             *     }
             */
            each_end_user?: components["schemas"]["NewSharedEndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session"
             *         }
             *       ]
             *     }
             */
            each_session?: components["schemas"]["NewSharedSessionLimits"] | null;
            /**
             * @description All its teams, by name or ID: others leave the group. A team that is in another group leaves it.
             * @example [
             *       "search",
             *       "ranking"
             *     ]
             */
            teams?: string[];
        };
        KeyPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Key"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Key: {
            /**
             * Format: uuid
             * @description ID of the key.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Unique within the team, revoked keys included.
             * @example ci
             */
            name: string;
            /**
             * @description Name of the team.
             * @example search
             */
            team: string;
            /**
             * Format: uuid
             * @description ID of its team.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            team_id: string;
            /**
             * @description First 12 characters of the newest secret; null if the key has none.
             * @example ptn_4fGh7Kq2
             */
            prefix: string | null;
            /**
             * Format: date-time
             * @description When the key was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the previous secret stops working after a rotation; null if it does not work any more.
             * @example 2030-01-31T12:00:00.000Z
             */
            previous_secret_expires_at: string | null;
            /**
             * Format: date-time
             * @description Expiry time; null if the key never expires.
             * @example 2030-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description Of a key that needs recent sign-ins of its owner: until when they move `expires_at`, at most. Null for other keys.
             * @example 2030-01-31T12:00:00.000Z
             */
            latest_expiry: string | null;
            /**
             * Format: date-time
             * @description Last use of any of its secrets, updated with a delay of some seconds.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
            /**
             * Format: date-time
             * @description When the key was revoked; null if it was not.
             * @example 2026-01-31T12:00:00.000Z
             */
            revoked_at: string | null;
            /**
             * @description Calls with a disabled key are rejected.
             * @example false
             */
            disabled: boolean;
            /**
             * @description Names of the providers and routes the key may use, of those that its team may use; null allows all of these.
             * @example [
             *       "openai"
             *     ]
             */
            providers: string[] | null;
            /**
             * @description `inference` allows only the inference endpoints; `own` also allows files, batches and all other endpoints at providers that belong to the team; `all` allows them at every provider, where all its teams share them.
             * @enum {string}
             */
            endpoints: "inference" | "own" | "all";
            /**
             * @description `forward` passes `Idempotency-Key` on; `replay` also answers repeated calls from the stored response.
             * @enum {string}
             */
            idempotency: "forward" | "replay";
            /**
             * @description Whether the key may open WebSockets on `/v1/realtime` and `/v1/responses`; otherwise they get 426.
             * @example false
             */
            websockets: boolean;
            /**
             * @description What happens to a call whose client disconnects before the response is complete. `cancel`: the connection to the provider is closed. `finish`: the response is read to its end, so that its usage is known. Null: as the provider of the call says.
             * @example finish
             * @enum {string|null}
             */
            on_disconnect: "cancel" | "finish" | null;
            /** @description Returns the response of an earlier call with exactly the same request, without calling the provider; null: no cache. */
            cache: components["schemas"]["KeyCache"] | null;
            /**
             * @description Names of the models that may be used, in which `*` stands for any characters; `[]` allows none, null allows all.
             * @example [
             *       "gpt-5*",
             *       "claude-haiku-*"
             *     ]
             */
            models: string[] | null;
            /**
             * @description Streams of chat completions without `stream_options.include_usage`: `as_sent` forwards them, `require` rejects them, `ask` adds it to the request body.
             * @enum {string}
             */
            stream_usage: "as_sent" | "require" | "ask";
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20
             *     }
             */
            limits: components["schemas"]["Limits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "models": null,
             *         "requests_per_minute": 600,
             *         "tokens_per_minute": null,
             *         "concurrent_requests": 20
             *       }
             *     ]
             */
            filtered_limits: components["schemas"]["FilteredLimits"][];
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month",
             *         "mode": "block",
             *         "alert_at": [],
             *         "unpriced": "reject",
             *         "reservation": "typical"
             *       }
             *     ]
             */
            budgets: components["schemas"]["Budget"][];
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20,
             *       "budgets": []
             *     }
             */
            each_end_user: components["schemas"]["EndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "requests_per_minute": null,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": null,
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session",
             *           "mode": "block",
             *           "alert_at": [],
             *           "unpriced": "reject",
             *           "reservation": "typical"
             *         }
             *       ]
             *     }
             */
            each_session: components["schemas"]["SessionLimits"] | null;
            /**
             * @description Who owns it, such as a person or a group. `GET /admin/v1/usage?group_by=owner` sums by it. Of a key: null for that of its team. Of a key with `self_service`, the member who created it: it cannot be changed then. Nobody gets a right by it.
             * @example jane@example.com
             */
            owner: string | null;
            /**
             * @description Whom to ask, such as a person or a channel. Of a key: null for that of its team.
             * @example #search-oncall
             */
            contact: string | null;
            /**
             * @description Who is charged. `GET /admin/v1/usage?group_by=cost_center` sums by it. Of a key: null for that of its team.
             * @example CC-4711
             */
            cost_center: string | null;
            /**
             * @description Free text, for people.
             * @example Nightly batch of the ranking model.
             */
            note: string | null;
            /**
             * @description Whether a member of the team, its `owner`, created the key for themselves: within `self_service` of the team.
             * @example false
             */
            self_service: boolean;
            /**
             * @description Of a key with `self_service`: the owner for good, whatever the name: `token:<ID>` or `sso:<issuer>#<sub>`; null for other keys, and those of earlier versions, which belong to the name.
             * @example sso:https://login.example.com#8f2c0a
             */
            owner_id: string | null;
            /**
             * @description `manual`: somebody created the key; `sign_in`: a person did by their first sign-in from a client. Such a key has tokens only, and no secret.
             * @example manual
             * @enum {string}
             */
            origin: "manual" | "sign_in";
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
        };
        KeyCache: {
            /**
             * @description How long a response is returned for calls with the same request, in seconds.
             * @example 3600
             */
            ttl_seconds: number;
            /**
             * @description `key`: only this key gets its responses; `team`: all keys of the team that have this setting share theirs.
             * @enum {string}
             */
            shared: "key" | "team";
        };
        KeyAllowance: {
            /**
             * @description Name of the team.
             * @example search
             */
            team: string;
            /**
             * @description Keys of yours that count.
             * @example 1
             */
            keys: number;
            /**
             * @description How many may count.
             * @example 3
             */
            keys_per_user: number;
            /**
             * Format: date-time
             * @description Keys that ended since then count too; null: only those that work.
             * @example 2026-01-31T12:00:00.000Z
             */
            counted_since: string | null;
            /**
             * @description Longest lifetime of a new key, in days.
             * @example 90
             */
            max_days: number;
            /**
             * Format: date-time
             * @description When a new key expires, unless you choose an earlier time.
             * @example 2030-01-31T12:00:00.000Z
             */
            latest_expiry: string;
            /**
             * @description A new key stops working so many days after you last signed in, and works again when you do; null: it needs no sign-in.
             * @example 14
             */
            sign_in_within_days: number | null;
            /**
             * @description Budget of a new key in USD per month; null for none.
             * @example 50
             */
            budget_usd_per_month: string | null;
            /**
             * Format: date-time
             * @description When a month of the budget ends; null without one.
             * @example 2026-01-31T12:00:00.000Z
             */
            budget_resets_at: string | null;
            /**
             * @description Providers and routes that a new key may use; null: all.
             * @example [
             *       "openai"
             *     ]
             */
            providers: string[] | null;
        };
        KeyCountsPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["KeyCounts"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        KeyCounts: {
            /**
             * Format: uuid
             * @description ID of the team.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            team_id: string;
            /**
             * @description Keys that work.
             * @example 12
             */
            active: number;
            /**
             * @description Disabled keys; all keys of a disabled team are.
             * @example 0
             */
            disabled: number;
            /**
             * @description Keys that have expired.
             * @example 1
             */
            expired: number;
            /**
             * @description Revoked keys.
             * @example 3
             */
            revoked: number;
        };
        /**
         * @example {
         *       "team": "search",
         *       "name": "ci",
         *       "endpoints": "inference"
         *     }
         */
        NewKey: {
            /**
             * @description Name or ID of the team.
             * @example search
             */
            team: string;
            /**
             * @description Name of the key, unique within the team.
             * @example ci
             */
            name: string;
            /**
             * @description Whether the key gets a secret. Without one, only tokens that are issued for the key work: see trusts.
             * @default true
             */
            secret?: boolean;
            /**
             * Format: date-time
             * @description Expiry time, in the future; null or absent: the key never expires.
             * @example 2030-01-31T12:00:00.000Z
             */
            expires_at?: string | null;
            /**
             * @description Names of the providers and routes the key may use, of those that its team may use; null allows all of these.
             * @example [
             *       "openai"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description `inference` allows only the inference endpoints; `own` also allows files, batches and all other endpoints at providers that belong to the team; `all` allows them at every provider, where all its teams share them.
             * @default inference
             * @enum {string}
             */
            endpoints?: "inference" | "own" | "all";
            /**
             * @description `forward` passes `Idempotency-Key` on; `replay` also answers repeated calls from the stored response.
             * @default forward
             * @enum {string}
             */
            idempotency?: "forward" | "replay";
            /**
             * @description Whether the key may open WebSockets on `/v1/realtime` and `/v1/responses`; otherwise they get 426.
             * @default false
             */
            websockets?: boolean;
            /**
             * @description What happens to a call whose client disconnects before the response is complete. `cancel`: the connection to the provider is closed. `finish`: the response is read to its end, so that its usage is known. Null: as the provider of the call says.
             * @default null
             * @example finish
             * @enum {string|null}
             */
            on_disconnect?: "cancel" | "finish" | null;
            /**
             * @description Returns the response of an earlier call with exactly the same request, without calling the provider; null: no cache.
             * @default null
             */
            cache?: components["schemas"]["NewKeyCache"] | null;
            /**
             * @description Names of the models that may be used, in which `*` stands for any characters; `[]` allows none, null allows all.
             * @example [
             *       "gpt-5*",
             *       "claude-haiku-*"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description Streams of chat completions without `stream_options.include_usage`: `as_sent` forwards them, `require` rejects them, `ask` adds it to the request body.
             * @default as_sent
             * @enum {string}
             */
            stream_usage?: "as_sent" | "require" | "ask";
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600
             *     }
             */
            limits?: components["schemas"]["NewLimits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "requests_per_minute": 60
             *       }
             *     ]
             */
            filtered_limits?: components["schemas"]["NewFilteredLimits"][] | null;
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewBudget"][] | null;
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20
             *     }
             */
            each_end_user?: components["schemas"]["NewEndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session"
             *         }
             *       ]
             *     }
             */
            each_session?: components["schemas"]["NewSessionLimits"] | null;
            /**
             * @description Who owns it, such as a person or a group. `GET /admin/v1/usage?group_by=owner` sums by it. Of a key: null for that of its team. Of a key with `self_service`, the member who created it: it cannot be changed then. Nobody gets a right by it.
             * @default null
             * @example jane@example.com
             */
            owner?: string | null;
            /**
             * @description Whom to ask, such as a person or a channel. Of a key: null for that of its team.
             * @default null
             * @example #search-oncall
             */
            contact?: string | null;
            /**
             * @description Who is charged. `GET /admin/v1/usage?group_by=cost_center` sums by it. Of a key: null for that of its team.
             * @default null
             * @example CC-4711
             */
            cost_center?: string | null;
            /**
             * @description Free text, for people.
             * @default null
             * @example Nightly batch of the ranking model.
             */
            note?: string | null;
        };
        NewKeyCache: {
            /**
             * @description How long a response is returned for calls with the same request, in seconds.
             * @example 3600
             */
            ttl_seconds: number;
            /**
             * @description `key`: only this key gets its responses; `team`: all keys of the team that have this setting share theirs.
             * @default key
             * @enum {string}
             */
            shared?: "key" | "team";
        };
        IssuedKey: {
            /**
             * Format: uuid
             * @description ID of the key.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Unique within the team, revoked keys included.
             * @example ci
             */
            name: string;
            /**
             * @description Name of the team.
             * @example search
             */
            team: string;
            /**
             * Format: uuid
             * @description ID of its team.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            team_id: string;
            /**
             * @description First 12 characters of the newest secret; null if the key has none.
             * @example ptn_4fGh7Kq2
             */
            prefix: string | null;
            /**
             * Format: date-time
             * @description When the key was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the previous secret stops working after a rotation; null if it does not work any more.
             * @example 2030-01-31T12:00:00.000Z
             */
            previous_secret_expires_at: string | null;
            /**
             * Format: date-time
             * @description Expiry time; null if the key never expires.
             * @example 2030-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description Of a key that needs recent sign-ins of its owner: until when they move `expires_at`, at most. Null for other keys.
             * @example 2030-01-31T12:00:00.000Z
             */
            latest_expiry: string | null;
            /**
             * Format: date-time
             * @description Last use of any of its secrets, updated with a delay of some seconds.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
            /**
             * Format: date-time
             * @description When the key was revoked; null if it was not.
             * @example 2026-01-31T12:00:00.000Z
             */
            revoked_at: string | null;
            /**
             * @description Calls with a disabled key are rejected.
             * @example false
             */
            disabled: boolean;
            /**
             * @description Names of the providers and routes the key may use, of those that its team may use; null allows all of these.
             * @example [
             *       "openai"
             *     ]
             */
            providers: string[] | null;
            /**
             * @description `inference` allows only the inference endpoints; `own` also allows files, batches and all other endpoints at providers that belong to the team; `all` allows them at every provider, where all its teams share them.
             * @enum {string}
             */
            endpoints: "inference" | "own" | "all";
            /**
             * @description `forward` passes `Idempotency-Key` on; `replay` also answers repeated calls from the stored response.
             * @enum {string}
             */
            idempotency: "forward" | "replay";
            /**
             * @description Whether the key may open WebSockets on `/v1/realtime` and `/v1/responses`; otherwise they get 426.
             * @example false
             */
            websockets: boolean;
            /**
             * @description What happens to a call whose client disconnects before the response is complete. `cancel`: the connection to the provider is closed. `finish`: the response is read to its end, so that its usage is known. Null: as the provider of the call says.
             * @example finish
             * @enum {string|null}
             */
            on_disconnect: "cancel" | "finish" | null;
            /** @description Returns the response of an earlier call with exactly the same request, without calling the provider; null: no cache. */
            cache: components["schemas"]["KeyCache"] | null;
            /**
             * @description Names of the models that may be used, in which `*` stands for any characters; `[]` allows none, null allows all.
             * @example [
             *       "gpt-5*",
             *       "claude-haiku-*"
             *     ]
             */
            models: string[] | null;
            /**
             * @description Streams of chat completions without `stream_options.include_usage`: `as_sent` forwards them, `require` rejects them, `ask` adds it to the request body.
             * @enum {string}
             */
            stream_usage: "as_sent" | "require" | "ask";
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20
             *     }
             */
            limits: components["schemas"]["Limits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "models": null,
             *         "requests_per_minute": 600,
             *         "tokens_per_minute": null,
             *         "concurrent_requests": 20
             *       }
             *     ]
             */
            filtered_limits: components["schemas"]["FilteredLimits"][];
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month",
             *         "mode": "block",
             *         "alert_at": [],
             *         "unpriced": "reject",
             *         "reservation": "typical"
             *       }
             *     ]
             */
            budgets: components["schemas"]["Budget"][];
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20,
             *       "budgets": []
             *     }
             */
            each_end_user: components["schemas"]["EndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "requests_per_minute": null,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": null,
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session",
             *           "mode": "block",
             *           "alert_at": [],
             *           "unpriced": "reject",
             *           "reservation": "typical"
             *         }
             *       ]
             *     }
             */
            each_session: components["schemas"]["SessionLimits"] | null;
            /**
             * @description Who owns it, such as a person or a group. `GET /admin/v1/usage?group_by=owner` sums by it. Of a key: null for that of its team. Of a key with `self_service`, the member who created it: it cannot be changed then. Nobody gets a right by it.
             * @example jane@example.com
             */
            owner: string | null;
            /**
             * @description Whom to ask, such as a person or a channel. Of a key: null for that of its team.
             * @example #search-oncall
             */
            contact: string | null;
            /**
             * @description Who is charged. `GET /admin/v1/usage?group_by=cost_center` sums by it. Of a key: null for that of its team.
             * @example CC-4711
             */
            cost_center: string | null;
            /**
             * @description Free text, for people.
             * @example Nightly batch of the ranking model.
             */
            note: string | null;
            /**
             * @description Whether a member of the team, its `owner`, created the key for themselves: within `self_service` of the team.
             * @example false
             */
            self_service: boolean;
            /**
             * @description Of a key with `self_service`: the owner for good, whatever the name: `token:<ID>` or `sso:<issuer>#<sub>`; null for other keys, and those of earlier versions, which belong to the name.
             * @example sso:https://login.example.com#8f2c0a
             */
            owner_id: string | null;
            /**
             * @description `manual`: somebody created the key; `sign_in`: a person did by their first sign-in from a client. Such a key has tokens only, and no secret.
             * @example manual
             * @enum {string}
             */
            origin: "manual" | "sign_in";
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /**
             * @description The secret. Shown only in this response: Postern stores its digest. Null for a key without a secret.
             * @example ptn_…
             */
            key: string | null;
        };
        /**
         * @example {
         *       "endpoints": "all",
         *       "expires_at": null
         *     }
         */
        KeyChange: {
            /**
             * @description New name, unique within the team.
             * @example ci
             */
            name?: string;
            /**
             * Format: date-time
             * @description New expiry time, in the future; null: the key never expires. Of a key with a `latest_expiry` it is the new one, and must be a time; the present `expires_at` changes nothing.
             * @example 2030-01-31T12:00:00.000Z
             */
            expires_at?: string | null;
            /**
             * @description Names of the providers and routes the key may use, of those that its team may use; null allows all of these.
             * @example [
             *       "openai"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description `inference` allows only the inference endpoints; `own` also allows files, batches and all other endpoints at providers that belong to the team; `all` allows them at every provider, where all its teams share them.
             * @enum {string}
             */
            endpoints?: "inference" | "own" | "all";
            /**
             * @description `forward` passes `Idempotency-Key` on; `replay` also answers repeated calls from the stored response.
             * @enum {string}
             */
            idempotency?: "forward" | "replay";
            /** @description Whether the key may open WebSockets on `/v1/realtime` and `/v1/responses`; otherwise they get 426. */
            websockets?: boolean;
            /**
             * @description What happens to a call whose client disconnects before the response is complete. `cancel`: the connection to the provider is closed. `finish`: the response is read to its end, so that its usage is known. Null: as the provider of the call says.
             * @example finish
             * @enum {string|null}
             */
            on_disconnect?: "cancel" | "finish" | null;
            /** @description Returns the response of an earlier call with exactly the same request, without calling the provider; null: no cache. */
            cache?: components["schemas"]["NewKeyCache"] | null;
            /**
             * @description Names of the models that may be used, in which `*` stands for any characters; `[]` allows none, null allows all.
             * @example [
             *       "gpt-5*",
             *       "claude-haiku-*"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description Streams of chat completions without `stream_options.include_usage`: `as_sent` forwards them, `require` rejects them, `ask` adds it to the request body.
             * @enum {string}
             */
            stream_usage?: "as_sent" | "require" | "ask";
            /** @description Calls with a disabled key are rejected. */
            disabled?: boolean;
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600
             *     }
             */
            limits?: components["schemas"]["NewLimits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "requests_per_minute": 60
             *       }
             *     ]
             */
            filtered_limits?: components["schemas"]["NewFilteredLimits"][] | null;
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewBudget"][] | null;
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20
             *     }
             */
            each_end_user?: components["schemas"]["NewEndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session"
             *         }
             *       ]
             *     }
             */
            each_session?: components["schemas"]["NewSessionLimits"] | null;
            /**
             * @description Who owns it, such as a person or a group. `GET /admin/v1/usage?group_by=owner` sums by it. Of a key: null for that of its team. Of a key with `self_service`, the member who created it: it cannot be changed then. Nobody gets a right by it.
             * @example jane@example.com
             */
            owner?: string | null;
            /**
             * @description Whom to ask, such as a person or a channel. Of a key: null for that of its team.
             * @example #search-oncall
             */
            contact?: string | null;
            /**
             * @description Who is charged. `GET /admin/v1/usage?group_by=cost_center` sums by it. Of a key: null for that of its team.
             * @example CC-4711
             */
            cost_center?: string | null;
            /**
             * @description Free text, for people.
             * @example Nightly batch of the ranking model.
             */
            note?: string | null;
        };
        /**
         * @example {
         *       "grace_seconds": 3600
         *     }
         */
        Rotation: {
            /**
             * @description How long the previous secret keeps working, in seconds; 0 ends it at once. An older one stops working in any case.
             * @default 0
             * @example 3600
             */
            grace_seconds?: number;
        };
        RotatedKey: {
            /**
             * Format: uuid
             * @description ID of the key.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Unique within the team, revoked keys included.
             * @example ci
             */
            name: string;
            /**
             * @description Name of the team.
             * @example search
             */
            team: string;
            /**
             * Format: uuid
             * @description ID of its team.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            team_id: string;
            /**
             * @description First 12 characters of the newest secret; null if the key has none.
             * @example ptn_4fGh7Kq2
             */
            prefix: string | null;
            /**
             * Format: date-time
             * @description When the key was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the previous secret stops working after a rotation; null if it does not work any more.
             * @example 2030-01-31T12:00:00.000Z
             */
            previous_secret_expires_at: string | null;
            /**
             * Format: date-time
             * @description Expiry time; null if the key never expires.
             * @example 2030-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description Of a key that needs recent sign-ins of its owner: until when they move `expires_at`, at most. Null for other keys.
             * @example 2030-01-31T12:00:00.000Z
             */
            latest_expiry: string | null;
            /**
             * Format: date-time
             * @description Last use of any of its secrets, updated with a delay of some seconds.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
            /**
             * Format: date-time
             * @description When the key was revoked; null if it was not.
             * @example 2026-01-31T12:00:00.000Z
             */
            revoked_at: string | null;
            /**
             * @description Calls with a disabled key are rejected.
             * @example false
             */
            disabled: boolean;
            /**
             * @description Names of the providers and routes the key may use, of those that its team may use; null allows all of these.
             * @example [
             *       "openai"
             *     ]
             */
            providers: string[] | null;
            /**
             * @description `inference` allows only the inference endpoints; `own` also allows files, batches and all other endpoints at providers that belong to the team; `all` allows them at every provider, where all its teams share them.
             * @enum {string}
             */
            endpoints: "inference" | "own" | "all";
            /**
             * @description `forward` passes `Idempotency-Key` on; `replay` also answers repeated calls from the stored response.
             * @enum {string}
             */
            idempotency: "forward" | "replay";
            /**
             * @description Whether the key may open WebSockets on `/v1/realtime` and `/v1/responses`; otherwise they get 426.
             * @example false
             */
            websockets: boolean;
            /**
             * @description What happens to a call whose client disconnects before the response is complete. `cancel`: the connection to the provider is closed. `finish`: the response is read to its end, so that its usage is known. Null: as the provider of the call says.
             * @example finish
             * @enum {string|null}
             */
            on_disconnect: "cancel" | "finish" | null;
            /** @description Returns the response of an earlier call with exactly the same request, without calling the provider; null: no cache. */
            cache: components["schemas"]["KeyCache"] | null;
            /**
             * @description Names of the models that may be used, in which `*` stands for any characters; `[]` allows none, null allows all.
             * @example [
             *       "gpt-5*",
             *       "claude-haiku-*"
             *     ]
             */
            models: string[] | null;
            /**
             * @description Streams of chat completions without `stream_options.include_usage`: `as_sent` forwards them, `require` rejects them, `ask` adds it to the request body.
             * @enum {string}
             */
            stream_usage: "as_sent" | "require" | "ask";
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20
             *     }
             */
            limits: components["schemas"]["Limits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "models": null,
             *         "requests_per_minute": 600,
             *         "tokens_per_minute": null,
             *         "concurrent_requests": 20
             *       }
             *     ]
             */
            filtered_limits: components["schemas"]["FilteredLimits"][];
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month",
             *         "mode": "block",
             *         "alert_at": [],
             *         "unpriced": "reject",
             *         "reservation": "typical"
             *       }
             *     ]
             */
            budgets: components["schemas"]["Budget"][];
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20,
             *       "budgets": []
             *     }
             */
            each_end_user: components["schemas"]["EndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "requests_per_minute": null,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": null,
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session",
             *           "mode": "block",
             *           "alert_at": [],
             *           "unpriced": "reject",
             *           "reservation": "typical"
             *         }
             *       ]
             *     }
             */
            each_session: components["schemas"]["SessionLimits"] | null;
            /**
             * @description Who owns it, such as a person or a group. `GET /admin/v1/usage?group_by=owner` sums by it. Of a key: null for that of its team. Of a key with `self_service`, the member who created it: it cannot be changed then. Nobody gets a right by it.
             * @example jane@example.com
             */
            owner: string | null;
            /**
             * @description Whom to ask, such as a person or a channel. Of a key: null for that of its team.
             * @example #search-oncall
             */
            contact: string | null;
            /**
             * @description Who is charged. `GET /admin/v1/usage?group_by=cost_center` sums by it. Of a key: null for that of its team.
             * @example CC-4711
             */
            cost_center: string | null;
            /**
             * @description Free text, for people.
             * @example Nightly batch of the ranking model.
             */
            note: string | null;
            /**
             * @description Whether a member of the team, its `owner`, created the key for themselves: within `self_service` of the team.
             * @example false
             */
            self_service: boolean;
            /**
             * @description Of a key with `self_service`: the owner for good, whatever the name: `token:<ID>` or `sso:<issuer>#<sub>`; null for other keys, and those of earlier versions, which belong to the name.
             * @example sso:https://login.example.com#8f2c0a
             */
            owner_id: string | null;
            /**
             * @description `manual`: somebody created the key; `sign_in`: a person did by their first sign-in from a client. Such a key has tokens only, and no secret.
             * @example manual
             * @enum {string}
             */
            origin: "manual" | "sign_in";
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /**
             * @description The secret. Shown only in this response: Postern stores its digest.
             * @example ptn_…
             */
            key: string;
            /**
             * @description First characters of older secrets that were still in a grace and stopped working with this rotation.
             * @example [
             *       "ptn_4fGh7Kq2"
             *     ]
             */
            ended_secrets: string[];
        };
        /** @example {} */
        Revocation: Record<string, never>;
        /**
         * @example {
         *       "key": "ptn_…"
         *     }
         */
        LeakedSecret: {
            /**
             * @description The leaked secret or token.
             * @example ptn_…
             */
            key: string;
        };
        LeakedKey: {
            /**
             * Format: uuid
             * @description ID of the key.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Unique within the team, revoked keys included.
             * @example ci
             */
            name: string;
            /**
             * @description Name of the team.
             * @example search
             */
            team: string;
            /**
             * Format: uuid
             * @description ID of its team.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            team_id: string;
            /**
             * @description First 12 characters of the newest secret; null if the key has none.
             * @example ptn_4fGh7Kq2
             */
            prefix: string | null;
            /**
             * Format: date-time
             * @description When the key was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the previous secret stops working after a rotation; null if it does not work any more.
             * @example 2030-01-31T12:00:00.000Z
             */
            previous_secret_expires_at: string | null;
            /**
             * Format: date-time
             * @description Expiry time; null if the key never expires.
             * @example 2030-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description Of a key that needs recent sign-ins of its owner: until when they move `expires_at`, at most. Null for other keys.
             * @example 2030-01-31T12:00:00.000Z
             */
            latest_expiry: string | null;
            /**
             * Format: date-time
             * @description Last use of any of its secrets, updated with a delay of some seconds.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
            /**
             * Format: date-time
             * @description When the key was revoked; null if it was not.
             * @example 2026-01-31T12:00:00.000Z
             */
            revoked_at: string | null;
            /**
             * @description Calls with a disabled key are rejected.
             * @example false
             */
            disabled: boolean;
            /**
             * @description Names of the providers and routes the key may use, of those that its team may use; null allows all of these.
             * @example [
             *       "openai"
             *     ]
             */
            providers: string[] | null;
            /**
             * @description `inference` allows only the inference endpoints; `own` also allows files, batches and all other endpoints at providers that belong to the team; `all` allows them at every provider, where all its teams share them.
             * @enum {string}
             */
            endpoints: "inference" | "own" | "all";
            /**
             * @description `forward` passes `Idempotency-Key` on; `replay` also answers repeated calls from the stored response.
             * @enum {string}
             */
            idempotency: "forward" | "replay";
            /**
             * @description Whether the key may open WebSockets on `/v1/realtime` and `/v1/responses`; otherwise they get 426.
             * @example false
             */
            websockets: boolean;
            /**
             * @description What happens to a call whose client disconnects before the response is complete. `cancel`: the connection to the provider is closed. `finish`: the response is read to its end, so that its usage is known. Null: as the provider of the call says.
             * @example finish
             * @enum {string|null}
             */
            on_disconnect: "cancel" | "finish" | null;
            /** @description Returns the response of an earlier call with exactly the same request, without calling the provider; null: no cache. */
            cache: components["schemas"]["KeyCache"] | null;
            /**
             * @description Names of the models that may be used, in which `*` stands for any characters; `[]` allows none, null allows all.
             * @example [
             *       "gpt-5*",
             *       "claude-haiku-*"
             *     ]
             */
            models: string[] | null;
            /**
             * @description Streams of chat completions without `stream_options.include_usage`: `as_sent` forwards them, `require` rejects them, `ask` adds it to the request body.
             * @enum {string}
             */
            stream_usage: "as_sent" | "require" | "ask";
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20
             *     }
             */
            limits: components["schemas"]["Limits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "models": null,
             *         "requests_per_minute": 600,
             *         "tokens_per_minute": null,
             *         "concurrent_requests": 20
             *       }
             *     ]
             */
            filtered_limits: components["schemas"]["FilteredLimits"][];
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month",
             *         "mode": "block",
             *         "alert_at": [],
             *         "unpriced": "reject",
             *         "reservation": "typical"
             *       }
             *     ]
             */
            budgets: components["schemas"]["Budget"][];
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20,
             *       "budgets": []
             *     }
             */
            each_end_user: components["schemas"]["EndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "requests_per_minute": null,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": null,
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session",
             *           "mode": "block",
             *           "alert_at": [],
             *           "unpriced": "reject",
             *           "reservation": "typical"
             *         }
             *       ]
             *     }
             */
            each_session: components["schemas"]["SessionLimits"] | null;
            /**
             * @description Who owns it, such as a person or a group. `GET /admin/v1/usage?group_by=owner` sums by it. Of a key: null for that of its team. Of a key with `self_service`, the member who created it: it cannot be changed then. Nobody gets a right by it.
             * @example jane@example.com
             */
            owner: string | null;
            /**
             * @description Whom to ask, such as a person or a channel. Of a key: null for that of its team.
             * @example #search-oncall
             */
            contact: string | null;
            /**
             * @description Who is charged. `GET /admin/v1/usage?group_by=cost_center` sums by it. Of a key: null for that of its team.
             * @example CC-4711
             */
            cost_center: string | null;
            /**
             * @description Free text, for people.
             * @example Nightly batch of the ranking model.
             */
            note: string | null;
            /**
             * @description Whether a member of the team, its `owner`, created the key for themselves: within `self_service` of the team.
             * @example false
             */
            self_service: boolean;
            /**
             * @description Of a key with `self_service`: the owner for good, whatever the name: `token:<ID>` or `sso:<issuer>#<sub>`; null for other keys, and those of earlier versions, which belong to the name.
             * @example sso:https://login.example.com#8f2c0a
             */
            owner_id: string | null;
            /**
             * @description `manual`: somebody created the key; `sign_in`: a person did by their first sign-in from a client. Such a key has tokens only, and no secret.
             * @example manual
             * @enum {string}
             */
            origin: "manual" | "sign_in";
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /**
             * @description The keys of a disabled team are `disabled`.
             * @enum {string}
             */
            status: "active" | "disabled" | "expired" | "revoked";
            /**
             * @description `key`: a secret of the key itself. Others are tokens: `sign_in` of a person who signed in from a client, `exchange` for an identity token.
             * @enum {string}
             */
            kind: "key" | "sign_in" | "exchange";
            /**
             * @description Whom the token was issued to; null for a secret of the key.
             * @example repo:acme/api:ref:refs/heads/main
             */
            subject: string | null;
            /**
             * @description The trust that issued the token.
             * @example api-ci
             */
            trust: string | null;
            /**
             * Format: uuid
             * @description ID of the sign-in that the token was issued to.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            sign_in_id: string | null;
            /**
             * @description `ended`: this secret was rotated; or this token has expired, or does not work because its trust is disabled, its sign-in or person has ended, or its key was rotated. Independent of the key's status.
             * @enum {string}
             */
            secret_status: "active" | "ended";
            /** @description Whether `secret_expires_at` has passed, by the clock of Postgres. A token that was revoked has expired. */
            secret_expired: boolean;
            /**
             * Format: date-time
             * @description End of this secret's grace, null if it was not rotated; expiry time of a token.
             * @example 2026-01-31T12:00:00.000Z
             */
            secret_expires_at: string | null;
        };
        TrustPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Trust"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Trust: {
            /**
             * Format: uuid
             * @description ID of the trust.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Unique name of the trust.
             * @example api-ci
             */
            name: string;
            /**
             * @description The key, as `team/name`.
             * @example search/ci
             */
            key: string;
            /**
             * Format: uuid
             * @description ID of its key.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            key_id: string;
            /**
             * @description What the conditions must name, and the issuer if there is only one: `github`, `gitlab`, `kubernetes`, `aws`, `google`, `azure`, or `oidc` for any other.
             * @enum {string}
             */
            preset: "github" | "gitlab" | "kubernetes" | "aws" | "google" | "azure" | "oidc";
            /**
             * @description The `iss` of accepted identity tokens, compared byte for byte.
             * @example https://token.actions.githubusercontent.com
             */
            issuer: string;
            /**
             * @description The only `aud` of accepted identity tokens.
             * @example https://gateway.example.com
             */
            audience: string;
            /**
             * @description Public keys of the issuer, for one that Postern cannot reach; null: they are read from the issuer.
             * @example null
             */
            jwks: {
                [key: string]: unknown;
            } | null;
            /**
             * @description Accepted values by claim: each claim must have one of its values. A value may end with `*` after `:` or `/`. A name that begins with `/` is a JSON pointer.
             * @example {
             *       "repository_id": [
             *         "821093847"
             *       ],
             *       "ref": [
             *         "refs/heads/main",
             *         "refs/tags/*"
             *       ]
             *     }
             */
            claims: {
                [key: string]: (string | number | boolean)[];
            };
            /**
             * @description Of GitHub and GitLab: whether every branch, tag, environment and workflow may use the trust.
             * @example false
             */
            any_ref: boolean;
            /**
             * @description Networks that may use the trust; null: all.
             * @example [
             *       "10.0.0.0/8"
             *     ]
             */
            cidrs: string[] | null;
            /**
             * @description How long a token works, in minutes, from 5 to 60.
             * @example 60
             */
            token_minutes: number;
            /**
             * @description Longest lifetime of an accepted identity token, in minutes.
             * @example 120
             */
            longest_jwt_minutes: number;
            /**
             * @description How many tokens of the trust may work at a time.
             * @example 1000
             */
            max_live: number;
            /**
             * @description If false, none of its tokens works, and none is issued.
             * @example true
             */
            enabled: boolean;
            /**
             * Format: date-time
             * @description When the trust was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it last issued a token, updated with a delay of some seconds; null: never.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
            /**
             * @description How many of its tokens work now.
             * @example 3
             */
            live_tokens: number;
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
        };
        /**
         * @example {
         *       "name": "api-ci",
         *       "key": "search/ci",
         *       "preset": "github",
         *       "claims": {
         *         "repository_id": [
         *           "821093847"
         *         ],
         *         "ref": [
         *           "refs/heads/main",
         *           "refs/tags/*"
         *         ]
         *       }
         *     }
         */
        NewTrust: {
            /**
             * @description Unique name of the trust, which exchanges name.
             * @example api-ci
             */
            name: string;
            /**
             * @description The key whose tokens are issued: its ID, or `team/name`. Limits of the key apply to them.
             * @example search/ci
             */
            key: string;
            /**
             * @description What the conditions must name, and the issuer if there is only one: `github`, `gitlab`, `kubernetes`, `aws`, `google`, `azure`, or `oidc` for any other.
             * @default oidc
             * @example github
             * @enum {string}
             */
            preset?: "github" | "gitlab" | "kubernetes" | "aws" | "google" | "azure" | "oidc";
            /**
             * @description The `iss` of accepted identity tokens, compared byte for byte. Absent: that of the preset.
             * @default null
             * @example https://token.actions.githubusercontent.com
             */
            issuer?: string | null;
            /**
             * @description The only `aud` of accepted identity tokens. Absent: GATEWAY_URL.
             * @default null
             * @example https://gateway.example.com
             */
            audience?: string | null;
            /**
             * @description Public keys of the issuer, for one that Postern cannot reach; null: they are read from the issuer.
             * @example null
             */
            jwks?: unknown;
            /**
             * @description Accepted values by claim: each claim must have one of its values. A value may end with `*` after `:` or `/`. A name that begins with `/` is a JSON pointer.
             * @example {
             *       "repository_id": [
             *         "821093847"
             *       ],
             *       "ref": [
             *         "refs/heads/main",
             *         "refs/tags/*"
             *       ]
             *     }
             */
            claims: {
                [key: string]: (string | number | boolean)[];
            };
            /**
             * @description Of GitHub and GitLab: whether every branch, tag, environment and workflow may use the trust.
             * @default false
             */
            any_ref?: boolean;
            /**
             * @description Networks that may use the trust; null: all.
             * @example [
             *       "10.0.0.0/8"
             *     ]
             */
            cidrs?: string[] | null;
            /**
             * @description How long a token works, in minutes, from 5 to 60.
             * @default 60
             * @example 60
             */
            token_minutes?: number;
            /**
             * @description Longest lifetime of an accepted identity token, in minutes. Absent: 120; 1440 for GitLab, Kubernetes and Azure.
             * @default null
             * @example 120
             */
            longest_jwt_minutes?: number | null;
            /**
             * @description How many tokens of the trust may work at a time.
             * @default 1000
             * @example 1000
             */
            max_live?: number;
            /**
             * @description If false, none of its tokens works, and none is issued.
             * @default true
             */
            enabled?: boolean;
        };
        TrustFailures: {
            /** @description The last 50, newest first: of tokens that the issuer has signed. */
            data: components["schemas"]["TrustFailure"][];
        };
        TrustFailure: {
            /**
             * Format: uuid
             * @description ID of the failure.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * Format: date-time
             * @description When the token was rejected.
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            /**
             * @description What was not met.
             * @example the claim ref does not have an accepted value
             */
            reason: string;
            /**
             * @description `iss`, `aud` and the claims of the token that the conditions name, and no others.
             * @example {
             *       "iss": "https://token.actions.githubusercontent.com",
             *       "ref": "refs/pull/7/merge"
             *     }
             */
            claims: {
                [key: string]: unknown;
            };
        };
        /**
         * @example {
         *       "token": "eyJhbGciOi…"
         *     }
         */
        TestedToken: {
            /**
             * @description An identity token. It is neither stored nor logged.
             * @example eyJhbGciOi…
             */
            token: string;
        };
        TokenVerdict: {
            /**
             * @description Whether it would be exchanged.
             * @example false
             */
            accepted: boolean;
            /**
             * @description Reason for programs; null if it is accepted.
             * @example claim
             */
            reason: string | null;
            /**
             * @description The first thing that was not met; null if it is accepted.
             * @example the claim ref does not have an accepted value
             */
            detail: string | null;
            /**
             * @description Its `sub`; null if it is not accepted.
             * @example repo:acme/api:ref:refs/heads/main
             */
            subject: string | null;
            /** @description What was checked, in this order: its signature only if the trust is enabled, and nothing else of a token that cannot be read. */
            checks: components["schemas"]["TokenCheck"][];
        };
        TokenCheck: {
            /**
             * @description What was checked.
             * @example claims.ref
             */
            name: string;
            /**
             * @description Whether it is met.
             * @example false
             */
            met: boolean;
            /**
             * @description What was not met; null if it is met.
             * @example the claim ref does not have an accepted value
             */
            detail: string | null;
        };
        /**
         * @example {
         *       "enabled": false
         *     }
         */
        TrustChange: {
            /**
             * @description New unique name of the trust.
             * @example api-ci
             */
            name?: string;
            /**
             * @description The key whose tokens are issued: its ID, or `team/name`. Limits of the key apply to them.
             * @example search/ci
             */
            key?: string;
            /**
             * @description The `iss` of accepted identity tokens, compared byte for byte.
             * @example https://token.actions.githubusercontent.com
             */
            issuer?: string;
            /**
             * @description The only `aud` of accepted identity tokens.
             * @example https://gateway.example.com
             */
            audience?: string;
            /**
             * @description Public keys of the issuer, for one that Postern cannot reach; null: they are read from the issuer.
             * @example null
             */
            jwks?: unknown;
            /**
             * @description Accepted values by claim: each claim must have one of its values. A value may end with `*` after `:` or `/`. A name that begins with `/` is a JSON pointer.
             * @example {
             *       "repository_id": [
             *         "821093847"
             *       ],
             *       "ref": [
             *         "refs/heads/main",
             *         "refs/tags/*"
             *       ]
             *     }
             */
            claims?: {
                [key: string]: (string | number | boolean)[];
            };
            /** @description Of GitHub and GitLab: whether every branch, tag, environment and workflow may use the trust. */
            any_ref?: boolean;
            /**
             * @description Networks that may use the trust; null: all.
             * @example [
             *       "10.0.0.0/8"
             *     ]
             */
            cidrs?: string[] | null;
            /**
             * @description How long a token works, in minutes, from 5 to 60.
             * @example 60
             */
            token_minutes?: number;
            /**
             * @description Longest lifetime of an accepted identity token, in minutes.
             * @example 120
             */
            longest_jwt_minutes?: number;
            /**
             * @description How many tokens of the trust may work at a time.
             * @example 1000
             */
            max_live?: number;
            /** @description If false, none of its tokens works, and none is issued. */
            enabled?: boolean;
        };
        IssuedTokenPage: {
            /** @description The trusts that issue tokens of the key, by name; at most 100. */
            trusts: components["schemas"]["IssuingTrust"][];
            /** @description The entries of this page. */
            data: components["schemas"]["IssuedToken"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        IssuingTrust: {
            /**
             * @description Name of the trust.
             * @example api-ci
             */
            name: string;
            /**
             * Format: date-time
             * @description When it last issued a token, updated with a delay of some seconds; null: never.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
        };
        IssuedToken: {
            /**
             * Format: uuid
             * @description ID of the token.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description `exchange`: for an identity token; `sign_in`: to a person who signed in from a client.
             * @enum {string}
             */
            kind: "exchange" | "sign_in";
            /**
             * @description Whom it was issued to.
             * @example repo:acme/api:ref:refs/heads/main
             */
            subject: string;
            /**
             * @description The trust that issued it; null for a sign-in.
             * @example api-ci
             */
            trust: string | null;
            /**
             * Format: date-time
             * @description When it was issued.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it ends.
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string;
            /**
             * Format: date-time
             * @description When it was last used, updated with a delay of some seconds; null: never.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
        };
        PersonPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Person"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Person: {
            /**
             * Format: uuid
             * @description ID of the person.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description What the OpenID provider calls the person: for people to read only.
             * @example Jane Doe
             */
            name: string;
            /**
             * @description E-mail address that the provider vouched for at the last sign-in; null if it did not.
             * @example jane@example.com
             */
            email: string | null;
            /**
             * @description The OpenID provider.
             * @example https://login.example.com
             */
            issuer: string;
            /**
             * @description The ID of the person there. It is never given to another person; e-mail addresses are.
             * @example 248289761001
             */
            subject: string;
            /**
             * Format: date-time
             * @description When the person first signed in, to the console or from a client.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When they last signed in, to the console or from a client; null: not yet.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_sign_in_at: string | null;
            /**
             * Format: date-time
             * @description Since when they may not sign in, and nothing of theirs works; null: they may.
             * @example 2026-01-31T12:00:00.000Z
             */
            ended_at: string | null;
            /**
             * @description Sign-ins from clients that have not ended.
             * @example 2
             */
            live_sign_ins: number;
            /**
             * Format: date-time
             * @description When a refresh token of such a sign-in was last rejected because it had been used before: a second terminal that shares it, or somebody who has copied it; null: never.
             * @example 2026-01-31T12:00:00.000Z
             */
            spent_refused_at: string | null;
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
        };
        ShownPerson: {
            /**
             * Format: uuid
             * @description ID of the person.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description What the OpenID provider calls the person: for people to read only.
             * @example Jane Doe
             */
            name: string;
            /**
             * @description E-mail address that the provider vouched for at the last sign-in; null if it did not.
             * @example jane@example.com
             */
            email: string | null;
            /**
             * @description The OpenID provider.
             * @example https://login.example.com
             */
            issuer: string;
            /**
             * @description The ID of the person there. It is never given to another person; e-mail addresses are.
             * @example 248289761001
             */
            subject: string;
            /**
             * Format: date-time
             * @description When the person first signed in, to the console or from a client.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When they last signed in, to the console or from a client; null: not yet.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_sign_in_at: string | null;
            /**
             * Format: date-time
             * @description Since when they may not sign in, and nothing of theirs works; null: they may.
             * @example 2026-01-31T12:00:00.000Z
             */
            ended_at: string | null;
            /**
             * @description Sign-ins from clients that have not ended.
             * @example 2
             */
            live_sign_ins: number;
            /**
             * Format: date-time
             * @description When a refresh token of such a sign-in was last rejected because it had been used before: a second terminal that shares it, or somebody who has copied it; null: never.
             * @example 2026-01-31T12:00:00.000Z
             */
            spent_refused_at: string | null;
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /** @description Keys of the person that are not revoked; at most 500. */
            keys: components["schemas"]["KeyOfPerson"][];
            /**
             * @description Teams that they cannot sign in to from a client, because their key of sign-ins there was revoked. `POST /people/:id/reopen` lets them in again.
             * @example [
             *       "search"
             *     ]
             */
            blocked_teams: string[];
            /** @description The last 100 sign-ins from clients, newest first. Ended ones are deleted after 90 days. */
            sign_ins: components["schemas"]["ClientSignIn"][];
        };
        KeyOfPerson: {
            /**
             * Format: uuid
             * @description ID of the key.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description The key, as `team/name`.
             * @example search/notebook
             */
            name: string;
            /**
             * @description `sign_in`: for tokens of sign-ins; `manual`: a key with a secret, which the end of the person revokes.
             * @enum {string}
             */
            origin: "manual" | "sign_in";
        };
        ClientSignIn: {
            /**
             * Format: uuid
             * @description ID of the sign-in.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * Format: uuid
             * @description ID of the person.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            person_id: string;
            /**
             * @description Name of the person.
             * @example Jane Doe
             */
            person: string;
            /**
             * Format: uuid
             * @description ID of the key of the person in the team.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            key_id: string;
            /**
             * @description The key, as `team/name`.
             * @example search/jane@example.com
             */
            key: string;
            /**
             * @description The client, as it calls itself.
             * @example claude_code
             */
            surface: string;
            /**
             * @description Where it began, as `REQUEST_LOG_CLIENT` says.
             * @example 192.0.2.7
             */
            client_ip: string | null;
            /**
             * @description User-Agent of the client, as `REQUEST_LOG_CLIENT` says.
             * @example claude-code/2.1.330
             */
            program: string | null;
            /**
             * Format: date-time
             * @description When it began.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When its tokens were last renewed.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_renewed_at: string;
            /**
             * Format: date-time
             * @description When the person must sign in again; a renewal may move it.
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string;
            /**
             * Format: date-time
             * @description When it ended; none of its tokens works since; null: it has not.
             * @example 2026-01-31T12:00:00.000Z
             */
            ended_at: string | null;
            /**
             * @description Why: `signed_out`, `too_many`, `ended`, `person_ended`, `no_team` (their groups name it no more), `provider` or `over` (its time); null: it has not.
             * @example ended
             */
            end_reason: string | null;
            /**
             * Format: date-time
             * @description When a refresh token of it was last rejected because it had been used before; null: never.
             * @example 2026-01-31T12:00:00.000Z
             */
            spent_refused_at: string | null;
        };
        /** @example {} */
        Nothing: Record<string, never>;
        EndedPerson: {
            /**
             * Format: uuid
             * @description ID of the person.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description What the OpenID provider calls the person: for people to read only.
             * @example Jane Doe
             */
            name: string;
            /**
             * @description E-mail address that the provider vouched for at the last sign-in; null if it did not.
             * @example jane@example.com
             */
            email: string | null;
            /**
             * @description The OpenID provider.
             * @example https://login.example.com
             */
            issuer: string;
            /**
             * @description The ID of the person there. It is never given to another person; e-mail addresses are.
             * @example 248289761001
             */
            subject: string;
            /**
             * Format: date-time
             * @description When the person first signed in, to the console or from a client.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When they last signed in, to the console or from a client; null: not yet.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_sign_in_at: string | null;
            /**
             * Format: date-time
             * @description Since when they may not sign in, and nothing of theirs works; null: they may.
             * @example 2026-01-31T12:00:00.000Z
             */
            ended_at: string | null;
            /**
             * @description Sign-ins from clients that have not ended.
             * @example 2
             */
            live_sign_ins: number;
            /**
             * Format: date-time
             * @description When a refresh token of such a sign-in was last rejected because it had been used before: a second terminal that shares it, or somebody who has copied it; null: never.
             * @example 2026-01-31T12:00:00.000Z
             */
            spent_refused_at: string | null;
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /** @description What ended now. */
            ended: {
                /**
                 * @description Sign-ins from clients.
                 * @example 2
                 */
                sign_ins: number;
                /**
                 * @description Sessions of the console.
                 * @example 1
                 */
                sessions: number;
                /**
                 * @description Keys of their own with a secret, which were revoked.
                 * @example 1
                 */
                keys: number;
            };
        };
        SignInPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["ClientSignIn"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        ClientSetup: {
            /**
             * @description Whether people can sign in from clients: `SIGN_IN`.
             * @example true
             */
            enabled: boolean;
            /**
             * @description Where clients call: `GATEWAY_URL`, else `PUBLIC_URL`; null: neither is set.
             * @example https://gateway.example.com
             */
            gateway_url: string | null;
            /**
             * @description SHA-256 of the certificate there now, to compare with what a client shows; null over plain HTTP, or if it could not be verified.
             * @example AB:CD:…
             */
            certificate_sha256: string | null;
            /**
             * @description Why the gateway could not verify the certificate; null if it could. `NODE_EXTRA_CA_CERTS` names authorities of your own.
             * @example unable to get local issuer certificate
             */
            certificate_error: string | null;
        };
        ProviderPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Provider"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Provider: {
            /**
             * Format: uuid
             * @description ID of the provider; null for the one that PROVIDER_URL sets.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string | null;
            /**
             * @description Used in `/p/<name>/`.
             * @example openai
             */
            name: string;
            /**
             * @description Base URL without `/v1`.
             * @example https://api.openai.com
             */
            url: string;
            /**
             * @description How the secret is used: sent in the header of this name, or as a Bearer token; `aws-sigv4`: signs each request; `google`, `oauth2`: requests access tokens; `openai-federation`, `anthropic-federation`: exchanges an identity token of the gateway; `client`: callers send their own credential, which is forwarded, and the gateway key as `x-gateway-key`.
             * @enum {string}
             */
            auth: "bearer" | "x-api-key" | "api-key" | "x-goog-api-key" | "client" | "aws-sigv4" | "google" | "oauth2" | "openai-federation" | "anthropic-federation";
            /** @description What `auth` needs besides the secret, or in its place; null if it needs nothing. */
            auth_settings: components["schemas"]["ProviderAuthSettings"] | null;
            /**
             * @description State of the secret, which is never shown. `sealed`: stored, encrypted; `unreadable`: it was encrypted with another master key; `environment`: set by PROVIDER_KEY.
             * @enum {string}
             */
            secret_state: "sealed" | "none" | "unreadable" | "environment";
            /** @description Calls to `/v1` go to the default provider. At most one provider has true. */
            default: boolean;
            /**
             * @description `PROVIDER_URL`: this provider is stored as the default, but the one of PROVIDER_URL takes its place while that is set. Otherwise null.
             * @enum {string|null}
             */
            shadowed_by: "PROVIDER_URL" | null;
            /** @description Calls to a disabled provider are rejected. */
            enabled: boolean;
            /**
             * @description Name of the price list for its models; null if only custom prices for this provider apply.
             * @example openai
             */
            catalog: string | null;
            /**
             * @description What happens to a call whose client disconnects before the response is complete. `cancel`: the connection to the provider is closed. `finish`: the response is read to its end, so that its usage is known. Keys may say otherwise.
             * @enum {string}
             */
            on_disconnect: "cancel" | "finish";
            /**
             * @description The only team whose keys may use it, and routes that send calls to it; null: all teams. A provider with a team is not the default of all teams. Its name.
             * @example search
             */
            team: string | null;
            /**
             * @description `environment`: set by PROVIDER_URL, and changed only there.
             * @enum {string}
             */
            source: "stored" | "environment";
            /**
             * @description Increases with every change; null for the provider that PROVIDER_URL sets.
             * @example 1
             */
            version: number | null;
            /**
             * Format: date-time
             * @description When the provider was added.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string | null;
            /**
             * Format: date-time
             * @description When the provider was last changed.
             * @example 2026-01-31T12:00:00.000Z
             */
            updated_at: string | null;
        };
        ProviderAuthSettings: {
            /**
             * @description `aws-sigv4`: where temporary keys come from, in place of a secret: a role that an identity token may assume (`web-identity`), ECS or EKS Pod Identity (`container`), or the role of the virtual machine (`instance`).
             * @example web-identity
             * @enum {string}
             */
            credentials?: "web-identity" | "container" | "instance";
            /**
             * @description `google`, `oauth2`: where access tokens come from, in place of a secret: an identity token is exchanged (`federation`), or the metadata service of the virtual machine is asked (`metadata`).
             * @example metadata
             * @enum {string}
             */
            source?: "federation" | "metadata";
            /**
             * @description `openai-federation`, `anthropic-federation`; `aws-sigv4` with `web-identity`; `google` and `oauth2` with `federation`: name of the identity token in IDENTITY_TOKEN_FILES.
             * @example openai
             */
            identity_token?: string;
            /**
             * @description `aws-sigv4` with `web-identity`: the role to assume.
             * @example arn:aws:iam::111122223333:role/postern
             */
            role_arn?: string;
            /**
             * @description `google` with `federation`: full name of the workload identity pool provider.
             * @example //iam.googleapis.com/projects/123456789/locations/global/workloadIdentityPools/pool/providers/postern
             */
            audience?: string;
            /**
             * @description `google`: the service account to act as. With `metadata`, absent: the default one.
             * @example postern@example.iam.gserviceaccount.com
             */
            service_account?: string;
            /**
             * @description `openai-federation`: ID of the workload identity provider.
             * @example idp_0123456789
             */
            identity_provider_id?: string;
            /**
             * @description `anthropic-federation`: ID of the federation rule.
             * @example fdrl_0123456789
             */
            federation_rule_id?: string;
            /**
             * @description `anthropic-federation`: ID of the organization.
             * @example 00000000-0000-4000-8000-000000000000
             */
            organization_id?: string;
            /**
             * @description `openai-federation`, `anthropic-federation`: ID of the service account.
             * @example svac_0123456789
             */
            service_account_id?: string;
            /**
             * @description `anthropic-federation`: ID of the workspace; needed if the rule is for more than one.
             * @example wrkspc_0123456789
             */
            workspace_id?: string;
            /**
             * @description `aws-sigv4`: the region.
             * @example eu-central-1
             */
            region?: string;
            /**
             * @description `aws-sigv4`: the service that the signature is for; by default `bedrock`.
             * @example bedrock
             */
            service?: string;
            /**
             * @description `aws-sigv4`: the access key ID.
             * @example AKIAIOSFODNN7EXAMPLE
             */
            access_key_id?: string;
            /**
             * @description `oauth2`: where tokens are requested. For `google`, the key file names it. Not with `metadata`.
             * @example https://login.example.com/oauth2/token
             */
            token_url?: string;
            /**
             * @description `oauth2`: the ID of the client. With `metadata`, that of a user-assigned managed identity.
             * @example postern
             */
            client_id?: string;
            /**
             * @description `oauth2`, `google`: the scope of the tokens.
             * @example https://cognitiveservices.azure.com/.default
             */
            scope?: string;
            /**
             * @description `google`: the service account, from its key file.
             * @example postern@example.iam.gserviceaccount.com
             */
            client_email?: string;
        };
        /**
         * @example {
         *       "name": "openai",
         *       "url": "https://api.openai.com",
         *       "secret": "<its API key>",
         *       "default": true
         *     }
         */
        NewProvider: {
            /**
             * @description Used in `/p/<name>/`.
             * @example openai
             */
            name: string;
            /**
             * @description Base URL without `/v1`, such as `https://api.openai.com`.
             * @example https://api.openai.com
             */
            url: string;
            /**
             * @description How the secret is used: sent in the header of this name, or as a Bearer token; `aws-sigv4`: signs each request; `google`, `oauth2`: requests access tokens; `openai-federation`, `anthropic-federation`: exchanges an identity token of the gateway; `client`: callers send their own credential, which is forwarded, and the gateway key as `x-gateway-key`.
             * @default bearer
             * @enum {string}
             */
            auth?: "bearer" | "x-api-key" | "api-key" | "x-goog-api-key" | "client" | "aws-sigv4" | "google" | "oauth2" | "openai-federation" | "anthropic-federation";
            /**
             * @description The provider's API key; null if it needs none. It may be absent only if `auth` and its settings take none. Never shown again. For `aws-sigv4` the secret access key, or the JSON that `aws configure export-credentials` prints; for `google` the content of the JSON key file; for `oauth2` the client secret.
             * @example sk-…
             */
            secret?: string | null;
            auth_settings?: components["schemas"]["NewProviderAuthSettings"];
            /**
             * @description Calls to `/v1` go to the default provider.
             * @default false
             */
            default?: boolean;
            /**
             * @description Calls to a disabled provider are rejected.
             * @default true
             */
            enabled?: boolean;
            /**
             * @description Name of the price list for its models; null if only custom prices for this provider apply. Absent: the one that belongs to the URL's host, if there is one.
             * @example openai
             */
            catalog?: string | null;
            /**
             * @description What happens to a call whose client disconnects before the response is complete. `cancel`: the connection to the provider is closed. `finish`: the response is read to its end, so that its usage is known. Keys may say otherwise.
             * @default cancel
             * @enum {string}
             */
            on_disconnect?: "cancel" | "finish";
            /**
             * @description The only team whose keys may use it, and routes that send calls to it; null: all teams. A provider with a team is not the default of all teams. Its name or ID.
             * @default null
             * @example search
             */
            team?: string | null;
        };
        /** @description What `auth` needs besides the secret, or in its place. */
        NewProviderAuthSettings: {
            /**
             * @description `aws-sigv4`: where temporary keys come from, in place of a secret: a role that an identity token may assume (`web-identity`), ECS or EKS Pod Identity (`container`), or the role of the virtual machine (`instance`).
             * @example web-identity
             * @enum {string}
             */
            credentials?: "web-identity" | "container" | "instance";
            /**
             * @description `google`, `oauth2`: where access tokens come from, in place of a secret: an identity token is exchanged (`federation`), or the metadata service of the virtual machine is asked (`metadata`).
             * @example metadata
             * @enum {string}
             */
            source?: "federation" | "metadata";
            /**
             * @description `openai-federation`, `anthropic-federation`; `aws-sigv4` with `web-identity`; `google` and `oauth2` with `federation`: name of the identity token in IDENTITY_TOKEN_FILES.
             * @example openai
             */
            identity_token?: string;
            /**
             * @description `aws-sigv4` with `web-identity`: the role to assume.
             * @example arn:aws:iam::111122223333:role/postern
             */
            role_arn?: string;
            /**
             * @description `google` with `federation`: full name of the workload identity pool provider.
             * @example //iam.googleapis.com/projects/123456789/locations/global/workloadIdentityPools/pool/providers/postern
             */
            audience?: string;
            /**
             * @description `google`: the service account to act as. With `metadata`, absent: the default one.
             * @example postern@example.iam.gserviceaccount.com
             */
            service_account?: string;
            /**
             * @description `openai-federation`: ID of the workload identity provider.
             * @example idp_0123456789
             */
            identity_provider_id?: string;
            /**
             * @description `anthropic-federation`: ID of the federation rule.
             * @example fdrl_0123456789
             */
            federation_rule_id?: string;
            /**
             * @description `anthropic-federation`: ID of the organization.
             * @example 00000000-0000-4000-8000-000000000000
             */
            organization_id?: string;
            /**
             * @description `openai-federation`, `anthropic-federation`: ID of the service account.
             * @example svac_0123456789
             */
            service_account_id?: string;
            /**
             * @description `anthropic-federation`: ID of the workspace; needed if the rule is for more than one.
             * @example wrkspc_0123456789
             */
            workspace_id?: string;
            /**
             * @description `aws-sigv4`: the region.
             * @example eu-central-1
             */
            region?: string;
            /**
             * @description `aws-sigv4`: the service that the signature is for; by default `bedrock`.
             * @example bedrock
             */
            service?: string;
            /**
             * @description `aws-sigv4`: the access key ID.
             * @example AKIAIOSFODNN7EXAMPLE
             */
            access_key_id?: string;
            /**
             * @description `oauth2`: where tokens are requested. For `google`, the key file names it. Not with `metadata`.
             * @example https://login.example.com/oauth2/token
             */
            token_url?: string;
            /**
             * @description `oauth2`: the ID of the client. With `metadata`, that of a user-assigned managed identity.
             * @example postern
             */
            client_id?: string;
            /**
             * @description `oauth2`, `google`: the scope of the tokens.
             * @example https://cognitiveservices.azure.com/.default
             */
            scope?: string;
        };
        /**
         * @example {
         *       "enabled": false
         *     }
         */
        ProviderChange: {
            /**
             * @description Base URL without `/v1`, such as `https://api.openai.com`. A URL on another host needs the secret again.
             * @example https://api.openai.com
             */
            url?: string;
            /**
             * @description How the secret is used: sent in the header of this name, or as a Bearer token; `aws-sigv4`: signs each request; `google`, `oauth2`: requests access tokens; `openai-federation`, `anthropic-federation`: exchanges an identity token of the gateway; `client`: callers send their own credential, which is forwarded, and the gateway key as `x-gateway-key`.
             * @enum {string}
             */
            auth?: "bearer" | "x-api-key" | "api-key" | "x-goog-api-key" | "client" | "aws-sigv4" | "google" | "oauth2" | "openai-federation" | "anthropic-federation";
            /**
             * @description The provider's new API key; null removes the stored one. For `aws-sigv4` the secret access key, or the JSON that `aws configure export-credentials` prints; for `google` the content of the JSON key file; for `oauth2` the client secret.
             * @example sk-…
             */
            secret?: string | null;
            auth_settings?: components["schemas"]["ProviderAuthSettingsChange"];
            /** @description Calls to `/v1` go to the default provider. */
            default?: boolean;
            /** @description Calls to a disabled provider are rejected. */
            enabled?: boolean;
            /**
             * @description Name of the price list for its models; null if only custom prices for this provider apply. Absent: it stays, or follows the URL if it belonged to the former URL's host.
             * @example openai
             */
            catalog?: string | null;
            /**
             * @description What happens to a call whose client disconnects before the response is complete. `cancel`: the connection to the provider is closed. `finish`: the response is read to its end, so that its usage is known. Keys may say otherwise.
             * @enum {string}
             */
            on_disconnect?: "cancel" | "finish";
            /**
             * @description The only team whose keys may use it, and routes that send calls to it; null: all teams. A provider with a team is not the default of all teams. Its name or ID.
             * @example search
             */
            team?: string | null;
        };
        /** @description Settings to change; null removes one. `access_key_id`, `token_url` and `client_id` need the secret again. */
        ProviderAuthSettingsChange: {
            /**
             * @description `aws-sigv4`: where temporary keys come from, in place of a secret: a role that an identity token may assume (`web-identity`), ECS or EKS Pod Identity (`container`), or the role of the virtual machine (`instance`).
             * @example web-identity
             * @enum {string|null}
             */
            credentials?: "web-identity" | "container" | "instance" | null;
            /**
             * @description `google`, `oauth2`: where access tokens come from, in place of a secret: an identity token is exchanged (`federation`), or the metadata service of the virtual machine is asked (`metadata`).
             * @example metadata
             * @enum {string|null}
             */
            source?: "federation" | "metadata" | null;
            /**
             * @description `openai-federation`, `anthropic-federation`; `aws-sigv4` with `web-identity`; `google` and `oauth2` with `federation`: name of the identity token in IDENTITY_TOKEN_FILES.
             * @example openai
             */
            identity_token?: string | null;
            /**
             * @description `aws-sigv4` with `web-identity`: the role to assume.
             * @example arn:aws:iam::111122223333:role/postern
             */
            role_arn?: string | null;
            /**
             * @description `google` with `federation`: full name of the workload identity pool provider.
             * @example //iam.googleapis.com/projects/123456789/locations/global/workloadIdentityPools/pool/providers/postern
             */
            audience?: string | null;
            /**
             * @description `google`: the service account to act as. With `metadata`, absent: the default one.
             * @example postern@example.iam.gserviceaccount.com
             */
            service_account?: string | null;
            /**
             * @description `openai-federation`: ID of the workload identity provider.
             * @example idp_0123456789
             */
            identity_provider_id?: string | null;
            /**
             * @description `anthropic-federation`: ID of the federation rule.
             * @example fdrl_0123456789
             */
            federation_rule_id?: string | null;
            /**
             * @description `anthropic-federation`: ID of the organization.
             * @example 00000000-0000-4000-8000-000000000000
             */
            organization_id?: string | null;
            /**
             * @description `openai-federation`, `anthropic-federation`: ID of the service account.
             * @example svac_0123456789
             */
            service_account_id?: string | null;
            /**
             * @description `anthropic-federation`: ID of the workspace; needed if the rule is for more than one.
             * @example wrkspc_0123456789
             */
            workspace_id?: string | null;
            /**
             * @description `aws-sigv4`: the region.
             * @example eu-central-1
             */
            region?: string | null;
            /**
             * @description `aws-sigv4`: the service that the signature is for; by default `bedrock`.
             * @example bedrock
             */
            service?: string | null;
            /**
             * @description `aws-sigv4`: the access key ID.
             * @example AKIAIOSFODNN7EXAMPLE
             */
            access_key_id?: string | null;
            /**
             * @description `oauth2`: where tokens are requested. For `google`, the key file names it. Not with `metadata`.
             * @example https://login.example.com/oauth2/token
             */
            token_url?: string | null;
            /**
             * @description `oauth2`: the ID of the client. With `metadata`, that of a user-assigned managed identity.
             * @example postern
             */
            client_id?: string | null;
            /**
             * @description `oauth2`, `google`: the scope of the tokens.
             * @example https://cognitiveservices.azure.com/.default
             */
            scope?: string | null;
        };
        Probe: {
            /** @description True if the provider responded and accepted the secret. */
            ok: boolean;
            /**
             * @description The result, for programs.
             * @enum {string}
             */
            code: "ok" | "name_not_resolved" | "refused" | "unreachable" | "timeout" | "tls" | "forbidden_address" | "not_http" | "unauthorized" | "credential_unavailable" | "not_found" | "redirect" | "rate_limited" | "provider_error" | "unexpected_status";
            /**
             * @description The result in one sentence, with the remedy.
             * @example OK: the provider responded and accepted the secret.
             */
            message: string;
            /**
             * @description HTTP status of the provider's response; null if there was none.
             * @example 200
             */
            status: number | null;
            /**
             * @description Milliseconds that the test took.
             * @example 210.5
             */
            duration_ms: number;
        };
        RoutePage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Route"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Route: {
            /**
             * Format: uuid
             * @description ID of the route.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Used in `/p/<name>/`.
             * @example main
             */
            name: string;
            /** @description Providers, in order; a provider may occur more than once, with other models. */
            targets: {
                /**
                 * @description Name of a provider.
                 * @example openai
                 */
                provider: string;
                /**
                 * @description Names of models that it is sent in place of those in the request; null for none.
                 * @example {
                 *       "gpt-5.6": "gpt-5.6-eu"
                 *     }
                 */
                models: {
                    [key: string]: string;
                } | null;
                /**
                 * Format: date-time
                 * @description Until when it gets no calls, because it refused calls or failed; null if it gets calls. As the process that responds has seen it: each process watches its own calls.
                 * @example 2026-01-31T12:00:00.000Z
                 */
                resting_until: string | null;
            }[];
            /**
             * @description `order`: the first target that does not rest. `spread`: each session, else each key, has a target of its own among them, so that the prompt caches of the providers stay warm.
             * @enum {string}
             */
            strategy: "order" | "spread";
            /** @description When a call is sent to another target. `connect`: no connection was made; `refused`: the provider responded with 429, 503 or 529; `failed`: with 500, 502 or 504, or it closed the connection without a response: it may have run the call and bill it. Never after a timeout. */
            retry_on: ("connect" | "refused" | "failed")[];
            /**
             * @description Targets that a call is sent to at most.
             * @example 2
             */
            max_attempts: number;
            /**
             * @description The API of the targets. `openai` and `anthropic` reject inference calls of the other API; `any` rejects none.
             * @enum {string}
             */
            dialect: "openai" | "anthropic" | "any";
            /** @description Calls to `/v1` use it, in place of a stored default provider. While PROVIDER_URL is set, that one is the default. */
            default: boolean;
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /**
             * Format: date-time
             * @description When the route was added.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the route was last changed.
             * @example 2026-01-31T12:00:00.000Z
             */
            updated_at: string;
        };
        /**
         * @example {
         *       "name": "main",
         *       "targets": [
         *         {
         *           "provider": "openai"
         *         },
         *         {
         *           "provider": "azure",
         *           "models": {
         *             "gpt-5.6": "gpt-5.6-eu"
         *           }
         *         }
         *       ]
         *     }
         */
        NewRoute: {
            /**
             * @description Used in `/p/<name>/`.
             * @example main
             */
            name: string;
            /**
             * @description Providers, in order; a provider may occur more than once, with other models.
             * @example [
             *       {
             *         "provider": "openai"
             *       },
             *       {
             *         "provider": "azure",
             *         "models": {
             *           "gpt-5.6": "gpt-5.6-eu"
             *         }
             *       }
             *     ]
             */
            targets: {
                /**
                 * @description Name of a provider.
                 * @example openai
                 */
                provider: string;
                /**
                 * @description Names of models that this provider is sent in place of those in the request. Others are sent as they are.
                 * @default null
                 * @example {
                 *       "gpt-5.6": "gpt-5.6-eu"
                 *     }
                 */
                models?: {
                    [key: string]: string;
                } | null;
            }[];
            /**
             * @description `order`: the first target that does not rest. `spread`: each session, else each key, has a target of its own among them, so that the prompt caches of the providers stay warm.
             * @default order
             * @enum {string}
             */
            strategy?: "order" | "spread";
            /**
             * @description When a call is sent to another target. `connect`: no connection was made; `refused`: the provider responded with 429, 503 or 529; `failed`: with 500, 502 or 504, or it closed the connection without a response: it may have run the call and bill it. Never after a timeout.
             * @example [
             *       "connect",
             *       "refused"
             *     ]
             */
            retry_on?: ("connect" | "refused" | "failed")[];
            /**
             * @description Targets that a call is sent to at most.
             * @default 2
             * @example 2
             */
            max_attempts?: number;
            /**
             * @description The API of the targets. `openai` and `anthropic` reject inference calls of the other API; `any` rejects none.
             * @default any
             * @enum {string}
             */
            dialect?: "openai" | "anthropic" | "any";
            /**
             * @description Calls to `/v1` use it, in place of a stored default provider. While PROVIDER_URL is set, that one is the default.
             * @default false
             */
            default?: boolean;
        };
        /**
         * @example {
         *       "max_attempts": 3
         *     }
         */
        RouteChange: {
            /**
             * @description Providers, in order; a provider may occur more than once, with other models.
             * @example [
             *       {
             *         "provider": "openai"
             *       },
             *       {
             *         "provider": "azure",
             *         "models": {
             *           "gpt-5.6": "gpt-5.6-eu"
             *         }
             *       }
             *     ]
             */
            targets?: {
                /**
                 * @description Name of a provider.
                 * @example openai
                 */
                provider: string;
                /**
                 * @description Names of models that this provider is sent in place of those in the request. Others are sent as they are.
                 * @default null
                 * @example {
                 *       "gpt-5.6": "gpt-5.6-eu"
                 *     }
                 */
                models?: {
                    [key: string]: string;
                } | null;
            }[];
            /**
             * @description `order`: the first target that does not rest. `spread`: each session, else each key, has a target of its own among them, so that the prompt caches of the providers stay warm.
             * @enum {string}
             */
            strategy?: "order" | "spread";
            /**
             * @description When a call is sent to another target. `connect`: no connection was made; `refused`: the provider responded with 429, 503 or 529; `failed`: with 500, 502 or 504, or it closed the connection without a response: it may have run the call and bill it. Never after a timeout.
             * @example [
             *       "connect",
             *       "refused"
             *     ]
             */
            retry_on?: ("connect" | "refused" | "failed")[];
            /**
             * @description Targets that a call is sent to at most.
             * @example 2
             */
            max_attempts?: number;
            /**
             * @description The API of the targets. `openai` and `anthropic` reject inference calls of the other API; `any` rejects none.
             * @enum {string}
             */
            dialect?: "openai" | "anthropic" | "any";
            /** @description Calls to `/v1` use it, in place of a stored default provider. While PROVIDER_URL is set, that one is the default. */
            default?: boolean;
        };
        RecordedRequests: {
            /** @description The calls, in the order in which they were written. */
            data: components["schemas"]["Request"][];
            /**
             * Format: date-time
             * @description Every row written up to this time can be read.
             * @example 2026-01-31T12:00:00.000Z
             */
            recorded_until: string;
        };
        Request: {
            /**
             * Format: uuid
             * @description UUIDv7, generated by the gateway. The client got it as `x-gateway-request-id`; of later attempts of a route, `call_id`.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * Format: date-time
             * @description When the request arrived: the millisecond in `id`. The table is partitioned by its UTC day.
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string;
            /**
             * Format: date-time
             * @description When Postgres stored the row, or last corrected it. An incremental export continues from here.
             * @example 2026-01-31T12:00:00.000Z
             */
            recorded_at: string;
            /**
             * Format: uuid
             * @description The team of the key. Joins `team.id`.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            team_id: string;
            /**
             * @description Present name of the team; null if it no longer exists.
             * @example search
             */
            team: string | null;
            /**
             * Format: uuid
             * @description The gateway key. Joins `gateway_key.id`.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            key_id: string;
            /**
             * @description Present name of the key, unique within its team; null if it no longer exists.
             * @example ci
             */
            key: string | null;
            /**
             * @description The name of the provider the call was sent to.
             * @example openai
             */
            provider: string;
            /**
             * @description The HTTP method.
             * @example POST
             */
            method: string;
            /**
             * @description The path as the client sent it, without the query. Null if the path contained a gateway key.
             * @example /v1/chat/completions
             */
            path: string | null;
            /**
             * @description The model that the forwarded request names, in its path if it names one there, otherwise in its body or query; if it names none, the model that the response names. Null if neither names a model, or the name contained a gateway key.
             * @example gpt-4o-mini
             */
            model: string | null;
            /**
             * @description True if the response was a stream of events.
             * @example true
             */
            streamed: boolean;
            /**
             * @description The HTTP status that the client was sent; of a `retried` attempt, the one that the provider sent. Null if there was no response head.
             * @example 200
             */
            status: number | null;
            /**
             * @description How the call ended, or the attempt: a route responded to a `retried` one with another attempt.
             * @enum {string}
             */
            outcome: "completed" | "client_aborted" | "client_error" | "upstream_error" | "upstream_timeout" | "truncated" | "interrupted" | "replayed" | "cached" | "retried";
            /**
             * @description The error code that the gateway sent, or the reason the call broke off. Null if the call did not fail in the gateway.
             * @example upstream_timeout
             */
            error_code: string | null;
            /**
             * @description Bytes of request body read from the client. Null if the process died during the call.
             * @example 2048
             */
            request_bytes: number | null;
            /**
             * @description Bytes of the provider's response body passed to the client. Null if the process died during the call.
             * @example 2048
             */
            response_bytes: number | null;
            /**
             * @description Milliseconds from the request head to the response head, on a monotonic clock. Null if no response head was received.
             * @example 812.5
             */
            ttfb_ms: number | null;
            /**
             * @description Milliseconds from the request head to the last byte of the response, on a monotonic clock. Null if the process died during the call.
             * @example 812.5
             */
            duration_ms: number | null;
            /**
             * @description All input tokens, including those read from and written to the provider's cache. Null if the provider reported none, or the response could not be read.
             * @example 120
             */
            prompt_tokens: number | null;
            /**
             * @description All output tokens, including reasoning. Null if the provider reported none, or the response could not be read.
             * @example 120
             */
            completion_tokens: number | null;
            /**
             * @description Of the input tokens, those read from the provider's cache. Null if the provider reported none, or the response could not be read.
             * @example 120
             */
            cached_tokens: number | null;
            /**
             * @description Of the output tokens, reasoning ("thinking"). Null if the provider reported none, or the response could not be read.
             * @example 120
             */
            reasoning_tokens: number | null;
            /**
             * @description The provider's own request ID (`x-request-id` or `request-id`), for its support. Null if the provider returned none or the text contained a gateway key.
             * @example req_0123456789abcdef
             */
            provider_request_id: string | null;
            /**
             * @description The `Idempotency-Key` header of the request. Null if the client sent none or the text contained a gateway key.
             * @example order-4711
             */
            idempotency_key: string | null;
            /**
             * @description Which retry of the SDK this was, from its `x-stainless-retry-count` header. 0 is the first try. Null if the client sent none.
             * @example 0
             */
            sdk_retry_count: number | null;
            /**
             * @description The client address. Stored as `REQUEST_LOG_CLIENT` says. Null if it is not stored or is not a valid address.
             * @example 192.0.2.7
             */
            client_ip: string | null;
            /**
             * @description The `User-Agent` header. Stored as `REQUEST_LOG_CLIENT` says. Null if it is not stored or was not sent, or the text contained a gateway key.
             * @example OpenAI/JS 6.49.0
             */
            user_agent: string | null;
            /**
             * @description Of the input tokens, those written to the provider's cache. Null if the provider reported none, or the response could not be read.
             * @example 120
             */
            cache_write_tokens: number | null;
            /**
             * @description Usage with a price of its own: `cache_write_1h_tokens`, audio and image tokens, searches, sessions, seconds, characters, pages and images, their `size` and `quality`, `uncounted_tools`, and a `service_tier` other than the default one. Of a WebSocket with several responses, `responses` has their sums by what decides their price: the model, if there were several, the service tier, and the length of the input. Null if the provider reported none of these, which is usual.
             * @example {}
             */
            extra_usage: {
                [key: string]: number | string;
            } | null;
            /**
             * @description What the call cost in USD: as the provider reported it, else its tokens times the price at `started_at`; of a WebSocket, the sum of its responses. Null if the model has no price, or the provider reported no tokens. Postern never estimates.
             * @example 0.000142500
             */
            cost_usd: string | null;
            /**
             * Format: uuid
             * @description The price of `cost_usd`. Joins `price.id`. Null if there is no cost, or the provider reported it.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            price_id: string | null;
            /**
             * @description What a call from the response cache would have cost in USD: as the provider reported it with the stored response, else its tokens times the price at `started_at`. It is never changed. Null if the response did not come from the cache, or its model had no price or its tokens were not reported.
             * @example 0.000142500
             */
            saved_usd: string | null;
            /**
             * Format: date-time
             * @description When the row was last updated: a late outcome, a late price, repricing, or a settled job. Null if the row is as it was first written.
             * @example 2026-01-31T12:00:00.000Z
             */
            repaired_at: string | null;
            /**
             * @description The end user that the client named. Stored as `REQUEST_LOG_USERS` says. Null if the client sent none or the text contained a gateway key.
             * @example null
             */
            end_user: string | null;
            /**
             * @description The session that the client named. Null if the client sent none or the text contained a gateway key.
             * @example null
             */
            session_id: string | null;
            /**
             * @description The tags of the `x-gateway-tags` header and of policies, as a JSON object of strings. Null if the client sent none or the text contained a gateway key.
             * @example {}
             */
            tags: {
                [key: string]: number | string;
            } | null;
            /**
             * @description What the gateway changed in the bytes of the call, as `x-gateway-altered` told the client. Null if request and response were forwarded unchanged.
             * @example stream_usage
             */
            altered: string | null;
            /**
             * @description What the call was charged against budgets in USD: its cost when the row was written, else an estimate. It is changed only when a job that it created is settled, with the budgets, so the sum of the charges is what the budgets count. Null if no budget in USD applied to the call.
             * @example 0.000142500
             */
            charge_usd: string | null;
            /**
             * @description What the call was charged against budgets in tokens: its input and output tokens, else an estimate. It is changed only when a job that it created is settled. Null if no budget in tokens applied to the call.
             * @example 2048
             */
            charge_tokens: number | null;
            /**
             * @description Keyed hash of the end user whose budget the call was charged against. Null if no budget per end user applied to the call.
             * @example null
             */
            limit_subject: string | null;
            /**
             * @description The budgets that the call was charged against (`limit_rule.nr`): what is spent of each is the sum of the charges of the rows that name it. As Postgres writes an array. Null if no budget applied to the call, or the row is older than this column.
             * @example {3141592653589793238,2718281828459045235}
             */
            charge_rules: string | null;
            /**
             * @description Keyed hash of the session whose budget the call was charged against. Null if no budget per session applied to the call.
             * @example null
             */
            limit_session: string | null;
            /**
             * Format: uuid
             * @description The call that this attempt belongs to: the `id` of its first attempt, which the client got as `x-gateway-request-id`. Null if the call did not use a route, so that it has this row only.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            call_id: string | null;
            /**
             * @description Which attempt of the call this was, from 1. Null if the call did not use a route.
             * @example 1
             */
            attempt: number | null;
            /**
             * @description Why the provider could not be reached or broke off: a code of the system, of TLS or of the HTTP client. Null if no error of the connection made the call fail.
             * @example ECONNREFUSED
             */
            error_cause: string | null;
            /**
             * @description The type of the provider's error: `error.type`, Gemini's `error.status`, or the exception of Bedrock; of a WebSocket, of the last error. Null if the provider reported none, or it is more than a word of at most 64 letters, digits and `_.:-`.
             * @example invalid_request_error
             */
            provider_error_type: string | null;
            /**
             * @description The code of the provider's error: `error.code`. Null if the provider reported none, or it is more than a word of at most 64 letters, digits and `_.:-`.
             * @example insufficient_quota
             */
            provider_error_code: string | null;
            /**
             * @description True if all usage of the call was read. False if the provider may have billed what was not read: the response was cut, timed out or interrupted, it ended without its usage, or tools were run that could not be counted. Null if there was nothing to bill (the provider rejected the call, it was never sent, or the response was a stored one), or the row is older than this column.
             * @example true
             */
            usage_final: boolean | null;
            /**
             * @description Of a call whose usage is not final, the least that it cost in USD: what was reported so far, priced. Of a WebSocket, what its open responses add to `cost_usd` at least. Null if the usage is final, or the model has no price.
             * @example 0.000120000
             */
            cost_low_usd: string | null;
            /**
             * @description Of a call whose usage is not final, the most that it cost in USD, at the highest rates of its price: the reported input, else `input_limit`; and the output that the request allows, else 131,072 tokens. Of a WebSocket, what its open responses add to `cost_usd` at most. Null if the usage is final, the model has no price, or nothing bounds the cost: the provider may run tools, or it reported no input and `input_limit` is null.
             * @example 0.004200000
             */
            cost_high_usd: string | null;
            /**
             * @description The most output tokens that the request allows: its limit times its choices. Null if the request names none, or was forwarded before it was read.
             * @example 1024
             */
            output_limit: number | null;
            /**
             * @description The most input tokens that the request can have: a token for each byte of its body. Null if input may come from elsewhere (URLs, IDs of files, stored conversations, tools that the provider runs), it has images or documents, the body is no JSON, or it was not read as a whole before the call was interrupted.
             * @example 4096
             */
            input_limit: number | null;
            /**
             * @description Whom the token of the call was issued to: the `sub` of the identity token that was exchanged for it; for a sign-in, `sso:` and the e-mail address of the person, or `sso:sub:` and their ID at the provider. With `REQUEST_LOG_SUBJECT=id`, `trust:` or `person:` and the ID of the trust or person. Null if the call was made with a static key, or it is not stored.
             * @example repo:acme/api:ref:refs/heads/main
             */
            subject: string | null;
        };
        RequestPage: {
            /**
             * @description Where the rows were read: the request log, or the sink that `REQUEST_LOG_ARCHIVE` names, which has older days.
             * @enum {string}
             */
            source: "log" | "archive" | "both";
            /** @description The entries of this page. */
            data: components["schemas"]["Request"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        ShownRequest: {
            /**
             * Format: uuid
             * @description UUIDv7, generated by the gateway. The client got it as `x-gateway-request-id`; of later attempts of a route, `call_id`.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * Format: date-time
             * @description When the request arrived: the millisecond in `id`. The table is partitioned by its UTC day.
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string;
            /**
             * Format: date-time
             * @description When Postgres stored the row, or last corrected it. An incremental export continues from here.
             * @example 2026-01-31T12:00:00.000Z
             */
            recorded_at: string;
            /**
             * Format: uuid
             * @description The team of the key. Joins `team.id`.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            team_id: string;
            /**
             * @description Present name of the team; null if it no longer exists.
             * @example search
             */
            team: string | null;
            /**
             * Format: uuid
             * @description The gateway key. Joins `gateway_key.id`.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            key_id: string;
            /**
             * @description Present name of the key, unique within its team; null if it no longer exists.
             * @example ci
             */
            key: string | null;
            /**
             * @description The name of the provider the call was sent to.
             * @example openai
             */
            provider: string;
            /**
             * @description The HTTP method.
             * @example POST
             */
            method: string;
            /**
             * @description The path as the client sent it, without the query. Null if the path contained a gateway key.
             * @example /v1/chat/completions
             */
            path: string | null;
            /**
             * @description The model that the forwarded request names, in its path if it names one there, otherwise in its body or query; if it names none, the model that the response names. Null if neither names a model, or the name contained a gateway key.
             * @example gpt-4o-mini
             */
            model: string | null;
            /**
             * @description True if the response was a stream of events.
             * @example true
             */
            streamed: boolean;
            /**
             * @description The HTTP status that the client was sent; of a `retried` attempt, the one that the provider sent. Null if there was no response head.
             * @example 200
             */
            status: number | null;
            /**
             * @description How the call ended, or the attempt: a route responded to a `retried` one with another attempt.
             * @enum {string}
             */
            outcome: "completed" | "client_aborted" | "client_error" | "upstream_error" | "upstream_timeout" | "truncated" | "interrupted" | "replayed" | "cached" | "retried";
            /**
             * @description The error code that the gateway sent, or the reason the call broke off. Null if the call did not fail in the gateway.
             * @example upstream_timeout
             */
            error_code: string | null;
            /**
             * @description Bytes of request body read from the client. Null if the process died during the call.
             * @example 2048
             */
            request_bytes: number | null;
            /**
             * @description Bytes of the provider's response body passed to the client. Null if the process died during the call.
             * @example 2048
             */
            response_bytes: number | null;
            /**
             * @description Milliseconds from the request head to the response head, on a monotonic clock. Null if no response head was received.
             * @example 812.5
             */
            ttfb_ms: number | null;
            /**
             * @description Milliseconds from the request head to the last byte of the response, on a monotonic clock. Null if the process died during the call.
             * @example 812.5
             */
            duration_ms: number | null;
            /**
             * @description All input tokens, including those read from and written to the provider's cache. Null if the provider reported none, or the response could not be read.
             * @example 120
             */
            prompt_tokens: number | null;
            /**
             * @description All output tokens, including reasoning. Null if the provider reported none, or the response could not be read.
             * @example 120
             */
            completion_tokens: number | null;
            /**
             * @description Of the input tokens, those read from the provider's cache. Null if the provider reported none, or the response could not be read.
             * @example 120
             */
            cached_tokens: number | null;
            /**
             * @description Of the output tokens, reasoning ("thinking"). Null if the provider reported none, or the response could not be read.
             * @example 120
             */
            reasoning_tokens: number | null;
            /**
             * @description The provider's own request ID (`x-request-id` or `request-id`), for its support. Null if the provider returned none or the text contained a gateway key.
             * @example req_0123456789abcdef
             */
            provider_request_id: string | null;
            /**
             * @description The `Idempotency-Key` header of the request. Null if the client sent none or the text contained a gateway key.
             * @example order-4711
             */
            idempotency_key: string | null;
            /**
             * @description Which retry of the SDK this was, from its `x-stainless-retry-count` header. 0 is the first try. Null if the client sent none.
             * @example 0
             */
            sdk_retry_count: number | null;
            /**
             * @description The client address. Stored as `REQUEST_LOG_CLIENT` says. Null if it is not stored or is not a valid address.
             * @example 192.0.2.7
             */
            client_ip: string | null;
            /**
             * @description The `User-Agent` header. Stored as `REQUEST_LOG_CLIENT` says. Null if it is not stored or was not sent, or the text contained a gateway key.
             * @example OpenAI/JS 6.49.0
             */
            user_agent: string | null;
            /**
             * @description Of the input tokens, those written to the provider's cache. Null if the provider reported none, or the response could not be read.
             * @example 120
             */
            cache_write_tokens: number | null;
            /**
             * @description Usage with a price of its own: `cache_write_1h_tokens`, audio and image tokens, searches, sessions, seconds, characters, pages and images, their `size` and `quality`, `uncounted_tools`, and a `service_tier` other than the default one. Of a WebSocket with several responses, `responses` has their sums by what decides their price: the model, if there were several, the service tier, and the length of the input. Null if the provider reported none of these, which is usual.
             * @example {}
             */
            extra_usage: {
                [key: string]: number | string;
            } | null;
            /**
             * @description What the call cost in USD: as the provider reported it, else its tokens times the price at `started_at`; of a WebSocket, the sum of its responses. Null if the model has no price, or the provider reported no tokens. Postern never estimates.
             * @example 0.000142500
             */
            cost_usd: string | null;
            /**
             * Format: uuid
             * @description The price of `cost_usd`. Joins `price.id`. Null if there is no cost, or the provider reported it.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            price_id: string | null;
            /**
             * @description What a call from the response cache would have cost in USD: as the provider reported it with the stored response, else its tokens times the price at `started_at`. It is never changed. Null if the response did not come from the cache, or its model had no price or its tokens were not reported.
             * @example 0.000142500
             */
            saved_usd: string | null;
            /**
             * Format: date-time
             * @description When the row was last updated: a late outcome, a late price, repricing, or a settled job. Null if the row is as it was first written.
             * @example 2026-01-31T12:00:00.000Z
             */
            repaired_at: string | null;
            /**
             * @description The end user that the client named. Stored as `REQUEST_LOG_USERS` says. Null if the client sent none or the text contained a gateway key.
             * @example null
             */
            end_user: string | null;
            /**
             * @description The session that the client named. Null if the client sent none or the text contained a gateway key.
             * @example null
             */
            session_id: string | null;
            /**
             * @description The tags of the `x-gateway-tags` header and of policies, as a JSON object of strings. Null if the client sent none or the text contained a gateway key.
             * @example {}
             */
            tags: {
                [key: string]: number | string;
            } | null;
            /**
             * @description What the gateway changed in the bytes of the call, as `x-gateway-altered` told the client. Null if request and response were forwarded unchanged.
             * @example stream_usage
             */
            altered: string | null;
            /**
             * @description What the call was charged against budgets in USD: its cost when the row was written, else an estimate. It is changed only when a job that it created is settled, with the budgets, so the sum of the charges is what the budgets count. Null if no budget in USD applied to the call.
             * @example 0.000142500
             */
            charge_usd: string | null;
            /**
             * @description What the call was charged against budgets in tokens: its input and output tokens, else an estimate. It is changed only when a job that it created is settled. Null if no budget in tokens applied to the call.
             * @example 2048
             */
            charge_tokens: number | null;
            /**
             * @description Keyed hash of the end user whose budget the call was charged against. Null if no budget per end user applied to the call.
             * @example null
             */
            limit_subject: string | null;
            /**
             * @description The budgets that the call was charged against (`limit_rule.nr`): what is spent of each is the sum of the charges of the rows that name it. As Postgres writes an array. Null if no budget applied to the call, or the row is older than this column.
             * @example {3141592653589793238,2718281828459045235}
             */
            charge_rules: string | null;
            /**
             * @description Keyed hash of the session whose budget the call was charged against. Null if no budget per session applied to the call.
             * @example null
             */
            limit_session: string | null;
            /**
             * Format: uuid
             * @description The call that this attempt belongs to: the `id` of its first attempt, which the client got as `x-gateway-request-id`. Null if the call did not use a route, so that it has this row only.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            call_id: string | null;
            /**
             * @description Which attempt of the call this was, from 1. Null if the call did not use a route.
             * @example 1
             */
            attempt: number | null;
            /**
             * @description Why the provider could not be reached or broke off: a code of the system, of TLS or of the HTTP client. Null if no error of the connection made the call fail.
             * @example ECONNREFUSED
             */
            error_cause: string | null;
            /**
             * @description The type of the provider's error: `error.type`, Gemini's `error.status`, or the exception of Bedrock; of a WebSocket, of the last error. Null if the provider reported none, or it is more than a word of at most 64 letters, digits and `_.:-`.
             * @example invalid_request_error
             */
            provider_error_type: string | null;
            /**
             * @description The code of the provider's error: `error.code`. Null if the provider reported none, or it is more than a word of at most 64 letters, digits and `_.:-`.
             * @example insufficient_quota
             */
            provider_error_code: string | null;
            /**
             * @description True if all usage of the call was read. False if the provider may have billed what was not read: the response was cut, timed out or interrupted, it ended without its usage, or tools were run that could not be counted. Null if there was nothing to bill (the provider rejected the call, it was never sent, or the response was a stored one), or the row is older than this column.
             * @example true
             */
            usage_final: boolean | null;
            /**
             * @description Of a call whose usage is not final, the least that it cost in USD: what was reported so far, priced. Of a WebSocket, what its open responses add to `cost_usd` at least. Null if the usage is final, or the model has no price.
             * @example 0.000120000
             */
            cost_low_usd: string | null;
            /**
             * @description Of a call whose usage is not final, the most that it cost in USD, at the highest rates of its price: the reported input, else `input_limit`; and the output that the request allows, else 131,072 tokens. Of a WebSocket, what its open responses add to `cost_usd` at most. Null if the usage is final, the model has no price, or nothing bounds the cost: the provider may run tools, or it reported no input and `input_limit` is null.
             * @example 0.004200000
             */
            cost_high_usd: string | null;
            /**
             * @description The most output tokens that the request allows: its limit times its choices. Null if the request names none, or was forwarded before it was read.
             * @example 1024
             */
            output_limit: number | null;
            /**
             * @description The most input tokens that the request can have: a token for each byte of its body. Null if input may come from elsewhere (URLs, IDs of files, stored conversations, tools that the provider runs), it has images or documents, the body is no JSON, or it was not read as a whole before the call was interrupted.
             * @example 4096
             */
            input_limit: number | null;
            /**
             * @description Whom the token of the call was issued to: the `sub` of the identity token that was exchanged for it; for a sign-in, `sso:` and the e-mail address of the person, or `sso:sub:` and their ID at the provider. With `REQUEST_LOG_SUBJECT=id`, `trust:` or `person:` and the ID of the trust or person. Null if the call was made with a static key, or it is not stored.
             * @example repo:acme/api:ref:refs/heads/main
             */
            subject: string | null;
            /** @description All attempts of the call, this one included, the first one first; empty if the call did not use a route. */
            attempts: components["schemas"]["Request"][];
        };
        UsagePage: {
            /**
             * Format: date-time
             * @description Calls recorded until then are counted.
             * @example 2026-01-31T12:00:00.000Z
             */
            as_of: string;
            /**
             * @description Where the calls were counted: `log`, the sums and rows of Postgres; or `archive`, the sink that `REQUEST_LOG_ARCHIVE` names, if `from` or `to` is before what Postgres can count.
             * @enum {string}
             */
            source: "log" | "archive";
            /** @description Sums over all groups, also of the following pages; null on a page that continues another. */
            totals: components["schemas"]["UsageSums"] | null;
            /** @description The entries of this page. */
            data: components["schemas"]["Usage"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        UsageSums: {
            /**
             * @description Number of calls.
             * @example 14
             */
            calls: number;
            /**
             * @description Attempts of calls by a route that were followed by another attempt. They are not among the calls; their tokens and costs, which are rare, are in the sums.
             * @example 0
             */
            retried_attempts: number;
            /**
             * @description Calls that failed; a client that disconnected is no error.
             * @example 1
             */
            errors: number;
            /**
             * @description Calls that may have used tokens although the provider reported none, such as streams without `include_usage`: they are missing from the sums of tokens. Counts POST calls with a status below 400 or none, except replayed and cached ones.
             * @example 2
             */
            calls_without_tokens: number;
            /**
             * @description Sum of `prompt_tokens` and `completion_tokens`.
             * @example 2048
             */
            total_tokens: number;
            /**
             * @description Sum: All input tokens, including those read from and written to the provider's cache.
             * @example 1024
             */
            prompt_tokens: number;
            /**
             * @description Sum: All output tokens, including reasoning.
             * @example 1024
             */
            completion_tokens: number;
            /**
             * @description Sum: Of the input tokens, those read from the provider's cache.
             * @example 1024
             */
            cached_tokens: number;
            /**
             * @description Sum: Of the input tokens, those written to the provider's cache.
             * @example 1024
             */
            cache_write_tokens: number;
            /**
             * @description Sum: Of the output tokens, reasoning ("thinking").
             * @example 1024
             */
            reasoning_tokens: number;
            /**
             * @description Sum: Bytes of request body read from the client.
             * @example 1024
             */
            request_bytes: number;
            /**
             * @description Sum: Bytes of the provider's response body passed to the client.
             * @example 1024
             */
            response_bytes: number;
            /**
             * @description Calls with tokens or other units and without a cost, for example because their model has no price. Without `unknown_calls`.
             * @example 1
             */
            unpriced_calls: number;
            /**
             * @description Exact sum of the costs in USD; null if no call has one.
             * @example 12.345678900
             */
            cost_usd: string | null;
            /**
             * @description Calls whose cost is not known, because the provider may have billed what was not read, such as the rest of a stream that broke off. They are not in `cost_usd`.
             * @example 3
             */
            unknown_calls: number;
            /**
             * @description Exact sum in USD of what these calls cost at least, never a part of `cost_usd`; null if it is known of none.
             * @example 0.200000000
             */
            unknown_low_usd: string | null;
            /**
             * @description Exact sum in USD of what these calls cost at most, without `unbounded_calls`, never a part of `cost_usd`; null if it is known of none.
             * @example 1.940000000
             */
            unknown_high_usd: string | null;
            /**
             * @description Calls among `unknown_calls` of which it is not known what they cost at most.
             * @example 0
             */
            unbounded_calls: number;
            /**
             * @description Exact sum in USD of what calls from the response cache would have cost; null if it is known of no call.
             * @example 1.234567800
             */
            saved_usd: string | null;
        };
        Usage: {
            /**
             * @description Month in the time zone.
             * @example 2026-01
             */
            month?: string;
            /**
             * @description First day, a Monday, of the week in the time zone.
             * @example 2026-01-26
             */
            week?: string;
            /**
             * @description Day in the time zone.
             * @example 2026-01-31
             */
            day?: string;
            /**
             * @description Start of the hour, in UTC.
             * @example 2026-01-31T12:00:00Z
             */
            hour?: string;
            /**
             * @description Start of the half hour, in UTC.
             * @example 2026-01-31T12:30:00Z
             */
            half_hour?: string;
            /**
             * @description Start of the minute, in UTC.
             * @example 2026-01-31T12:34:00Z
             */
            minute?: string;
            /**
             * @description Present group of the team; null for calls of teams in none.
             * @example dev
             */
            group?: string | null;
            /**
             * @description Name of the team, also that of the key in groups by key; null if it no longer exists.
             * @example search
             */
            team?: string | null;
            /**
             * Format: uuid
             * @description ID of the team.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            team_id?: string;
            /**
             * @description Name of the key, unique within its team; null if the key no longer exists.
             * @example ci
             */
            key?: string | null;
            /**
             * @description First characters of the newest secret of the key; null if the key no longer exists.
             * @example ptn_4fGh7Kq2
             */
            key_prefix?: string | null;
            /**
             * Format: uuid
             * @description ID of the key.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            key_id?: string;
            /**
             * @description Present owner of the key or its team; null for calls of keys without one.
             * @example jane@example.com
             */
            owner?: string | null;
            /**
             * @description Present cost center of the key or its team; null for calls of keys without one.
             * @example CC-4711
             */
            cost_center?: string | null;
            /**
             * @description Name of the provider.
             * @example openai
             */
            provider?: string;
            /**
             * @description Model; null for calls without one.
             * @example gpt-4o-mini
             */
            model?: string | null;
            /**
             * @description End user, as the client named it.
             * @example user-7
             */
            end_user?: string | null;
            /**
             * @description Session, as the client named it.
             * @example session-12
             */
            session?: string | null;
            /**
             * @description Values of the tags in `group_by`.
             * @example {
             *       "env": "prod"
             *     }
             */
            tags?: {
                [key: string]: string | null;
            };
            /**
             * @description Number of calls.
             * @example 14
             */
            calls: number;
            /**
             * @description Attempts of calls by a route that were followed by another attempt. They are not among the calls; their tokens and costs, which are rare, are in the sums.
             * @example 0
             */
            retried_attempts: number;
            /**
             * @description Calls that failed; a client that disconnected is no error.
             * @example 1
             */
            errors: number;
            /**
             * @description Calls that may have used tokens although the provider reported none, such as streams without `include_usage`: they are missing from the sums of tokens. Counts POST calls with a status below 400 or none, except replayed and cached ones.
             * @example 2
             */
            calls_without_tokens: number;
            /**
             * @description Sum of `prompt_tokens` and `completion_tokens`.
             * @example 2048
             */
            total_tokens: number;
            /**
             * @description Sum: All input tokens, including those read from and written to the provider's cache.
             * @example 1024
             */
            prompt_tokens: number;
            /**
             * @description Sum: All output tokens, including reasoning.
             * @example 1024
             */
            completion_tokens: number;
            /**
             * @description Sum: Of the input tokens, those read from the provider's cache.
             * @example 1024
             */
            cached_tokens: number;
            /**
             * @description Sum: Of the input tokens, those written to the provider's cache.
             * @example 1024
             */
            cache_write_tokens: number;
            /**
             * @description Sum: Of the output tokens, reasoning ("thinking").
             * @example 1024
             */
            reasoning_tokens: number;
            /**
             * @description Sum: Bytes of request body read from the client.
             * @example 1024
             */
            request_bytes: number;
            /**
             * @description Sum: Bytes of the provider's response body passed to the client.
             * @example 1024
             */
            response_bytes: number;
            /**
             * @description Calls with tokens or other units and without a cost, for example because their model has no price. Without `unknown_calls`.
             * @example 1
             */
            unpriced_calls: number;
            /**
             * @description Exact sum of the costs in USD; null if no call has one.
             * @example 12.345678900
             */
            cost_usd: string | null;
            /**
             * @description Calls whose cost is not known, because the provider may have billed what was not read, such as the rest of a stream that broke off. They are not in `cost_usd`.
             * @example 3
             */
            unknown_calls: number;
            /**
             * @description Exact sum in USD of what these calls cost at least, never a part of `cost_usd`; null if it is known of none.
             * @example 0.200000000
             */
            unknown_low_usd: string | null;
            /**
             * @description Exact sum in USD of what these calls cost at most, without `unbounded_calls`, never a part of `cost_usd`; null if it is known of none.
             * @example 1.940000000
             */
            unknown_high_usd: string | null;
            /**
             * @description Calls among `unknown_calls` of which it is not known what they cost at most.
             * @example 0
             */
            unbounded_calls: number;
            /**
             * @description Exact sum in USD of what calls from the response cache would have cost; null if it is known of no call.
             * @example 1.234567800
             */
            saved_usd: string | null;
            /**
             * @description Median duration in milliseconds, estimated from classes of durations; null without calls.
             * @example 850
             */
            p50_ms: number | null;
            /**
             * @description 95th percentile of the duration in milliseconds, estimated in the same way.
             * @example 4200
             */
            p95_ms: number | null;
        };
        UsageStatement: {
            /**
             * @description The month.
             * @example 2026-10
             */
            month: string;
            /**
             * @description Where it begins and ends.
             * @example Europe/Berlin
             */
            time_zone: string;
            /**
             * Format: date-time
             * @description Its first instant.
             * @example 2026-01-31T12:00:00.000Z
             */
            from: string;
            /**
             * Format: date-time
             * @description The first instant after it.
             * @example 2026-01-31T12:00:00.000Z
             */
            to: string;
            /**
             * @description Whether the month has ended. Late rows and new prices may still change it.
             * @example true
             */
            is_over: boolean;
            /**
             * Format: date-time
             * @description Calls recorded until then are counted.
             * @example 2026-01-31T12:00:00.000Z
             */
            as_of: string;
            /**
             * @description Name of the team.
             * @example search
             */
            team: string;
            /**
             * Format: uuid
             * @description ID of the team.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            team_id: string;
            /**
             * @description Present group of the team.
             * @example dev
             */
            group: string | null;
            /**
             * @description Present owner of the team.
             * @example jane@example.com
             */
            owner: string | null;
            /**
             * @description Present cost center of the team.
             * @example CC-4711
             */
            cost_center: string | null;
            /**
             * @description Present contact of the team.
             * @example #search
             */
            contact: string | null;
            /** @description One for each key, provider and model; the dearest first. */
            lines: components["schemas"]["Usage"][];
            /** @description Sums over all lines. */
            totals: components["schemas"]["UsageSums"];
        };
        SearchResult: {
            /** @description What was found, at most a few of each kind, the best first. */
            data: components["schemas"]["Found"][];
            /** @description What of the log was searched; null if it was not. */
            log: {
                /**
                 * Format: date-time
                 * @description The log was searched from this time on.
                 * @example 2026-01-31T12:00:00.000Z
                 */
                from: string;
                /**
                 * @description Whether the log has no older rows.
                 * @example false
                 */
                whole: boolean;
            } | null;
        };
        Found: {
            /**
             * @description What was found.
             * @enum {string}
             */
            kind: "request" | "team" | "key" | "model" | "end_user" | "session";
            /**
             * Format: uuid
             * @description Its ID; null for a model, an end user and a session, which have none.
             * @example null
             */
            id: string | null;
            /**
             * @description Its name; of a call the ID that the provider gave its response, or else its own ID.
             * @example gpt-4o-mini
             */
            name: string;
            /**
             * @description Name of the team of a key or a call; null for others, and for a call of a deleted team.
             * @example null
             */
            team: string | null;
            /**
             * Format: date-time
             * @description When the call began, or the newest call with this model, end user or session that the search met; null for others.
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string | null;
        };
        RefusalPage: {
            /**
             * @description Rejected requests of all groups, also of those that are not shown.
             * @example 1204
             */
            calls: number;
            /** @description The entries of this page. */
            data: components["schemas"]["Refusal"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Refusal: {
            /**
             * Format: date-time
             * @description Start of the interval.
             * @example 2026-01-31T12:00:00.000Z
             */
            start?: string;
            /**
             * @description Name of the team; null without a valid key.
             * @example search
             */
            team?: string | null;
            /**
             * Format: uuid
             * @description ID of the team.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            team_id?: string | null;
            /**
             * @description Name of the key; null without a valid key; `(other)`: more reasons than a process counts by themselves in a minute.
             * @example ci
             */
            key?: string | null;
            /**
             * Format: uuid
             * @description ID of the key.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            key_id?: string | null;
            /**
             * @description Why: `x-gateway-error`.
             * @example insufficient_quota
             */
            code?: string;
            /**
             * @description The limit or budget that rejected them, by whose it is; null: none, or it was removed.
             * @example search/ci usd/month
             */
            limit?: string | null;
            /**
             * Format: uuid
             * @description ID of the limit.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            limit_id?: string | null;
            /**
             * @description Where the call would have gone; null if that was not known yet.
             * @example openai
             */
            provider?: string | null;
            /**
             * @description Its model, for reasons that depend on it; at most 200 characters.
             * @example gpt-5
             */
            model?: string | null;
            /**
             * @description Rejected requests.
             * @example 1204
             */
            calls: number;
            /**
             * Format: date-time
             * @description When the last of them was rejected.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_at: string;
            /**
             * Format: uuid
             * @description ID of the last of them: its `x-gateway-request-id`.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            last_request_id: string;
        };
        JobPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Job"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Job: {
            /**
             * Format: uuid
             * @description ID of the call that created it, as in the request log.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description What it is.
             * @example batch
             * @enum {string}
             */
            kind: "batch" | "response" | "video";
            /**
             * @description Name of the provider.
             * @example openai
             */
            provider: string;
            /**
             * @description The model that the request named; null: none, as of most batches.
             * @example gpt-5
             */
            model: string | null;
            /**
             * @description Name of the team of the key.
             * @example search
             */
            team: string | null;
            /**
             * Format: uuid
             * @description ID of the team.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            team_id: string;
            /**
             * @description Name of the key.
             * @example ci
             */
            key: string | null;
            /**
             * Format: uuid
             * @description ID of the key.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            key_id: string;
            /**
             * @description `open`: it may still end; `settled`: what it used is in the request log; `unknown`: that cannot be found out.
             * @example open
             * @enum {string}
             */
            state: "open" | "settled" | "unknown";
            /**
             * @description Why the last check did not settle it; null: it goes on, or it is settled.
             * @example unauthorized
             */
            problem: string | null;
            /**
             * Format: date-time
             * @description When the call arrived.
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string;
            /**
             * Format: date-time
             * @description When the provider was last asked; null: not yet.
             * @example 2026-01-31T12:00:00.000Z
             */
            checked_at: string | null;
            /**
             * Format: date-time
             * @description When the provider is asked next; null: never.
             * @example 2026-01-31T12:00:00.000Z
             */
            next_check_at: string | null;
            /**
             * Format: date-time
             * @description When it was settled or given up; null: it is open.
             * @example 2026-01-31T12:00:00.000Z
             */
            ended_at: string | null;
            /**
             * @description Checks that have not settled it.
             * @example 3
             */
            tries: number;
            /**
             * @description Other calls that got the same job. They cost nothing.
             * @example []
             */
            duplicates: string[];
        };
        LimitPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Limit"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Limit: {
            /**
             * Format: uuid
             * @description ID of the limit.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Whose it is; `…_end_user`, `…_session`: each end user or session of its calls has the amount for itself.
             * @example team
             * @enum {string}
             */
            scope: "installation" | "installation_end_user" | "installation_session" | "group" | "group_end_user" | "group_session" | "team" | "team_end_user" | "team_session" | "key" | "key_end_user" | "key_session";
            /**
             * @description Name of the group; null for a limit of another owner.
             * @example null
             */
            group: string | null;
            /**
             * @description Name of the team; null for a limit of a group or the installation.
             * @example search
             */
            team: string | null;
            /**
             * @description Name of the key; null for a limit of a team.
             * @example ci
             */
            key: string | null;
            /**
             * Format: uuid
             * @description ID of the team, key or group; zeros for the installation.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            owner_id: string;
            /**
             * @description Only calls to these providers count; null: all.
             * @example [
             *       "openai"
             *     ]
             */
            providers: string[] | null;
            /**
             * @description Only calls of these models count; null: all.
             * @example [
             *       "claude-opus-*"
             *     ]
             */
            models: string[] | null;
            /**
             * @description Keyed hash of the end user or session that used most; null for a limit of the calls together, or that nobody used yet. The other figures are those of this end user or session.
             * @example n4bQgYhMfWWaL-qgxVrQFa
             */
            subject: string | null;
            /**
             * @description What is limited.
             * @enum {string}
             */
            resource: "requests" | "tokens" | "concurrent_requests" | "usd";
            /**
             * @description `minute`: any 60 seconds; `at_once`: at the same time; else the period of a budget.
             * @enum {string}
             */
            period: "minute" | "at_once" | "day" | "week" | "month" | "total" | "session";
            /**
             * @description `block` rejects calls; `warn` only counts.
             * @enum {string}
             */
            mode: "block" | "warn";
            /**
             * @description What a budget in USD does with calls without a price: `reject`; `allow`: they pass, and `used` leaves them out. Null for what is not in USD.
             * @example reject
             * @enum {string|null}
             */
            unpriced: "reject" | "allow" | null;
            /**
             * @description The limit. As a decimal, in USD for `usd`.
             * @example 500.00
             */
            amount: string;
            /**
             * @description What resets have added in this period. As a decimal, in USD for `usd`.
             * @example 0.00
             */
            credited: string;
            /**
             * @description The charges of calls in the request log, or what was used in the last minute or is in use. As a decimal, in USD for `usd`.
             * @example 123.45
             */
            used: string;
            /**
             * @description Reserved by gateways for calls. As a decimal, in USD for `usd`.
             * @example 1.20
             */
            held: string;
            /**
             * @description What is neither used nor held; not below 0. As a decimal, in USD for `usd`.
             * @example 375.35
             */
            left: string;
            /**
             * @description Calls rejected by it in this period.
             * @example 0
             */
            refused: number;
            /**
             * Format: date-time
             * @description When it last rejected a call in this period; null if it rejected none, or was reset since.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_rejected_at: string | null;
            /**
             * @description What that call would have used. As a decimal, in USD for `usd`. Null if it is not known.
             * @example 0.00207
             */
            last_needed: string | null;
            /**
             * @description `blocking`: it rejects calls: too little is left for the last one that it rejected, and it has admitted none since; `exhausted`: nothing is left; `warned`: used up to one of its `alert_at` percentages.
             * @enum {string}
             */
            state: "ok" | "warned" | "exhausted" | "blocking";
            /**
             * Format: date-time
             * @description When the budget resets; null if it never does, and for other limits.
             * @example 2026-01-31T12:00:00.000Z
             */
            resets_at: string | null;
        };
        InstallationLimits: {
            /**
             * Format: uuid
             * @description ID of the installation: zeros.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20
             *     }
             */
            limits: components["schemas"]["Limits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "models": null,
             *         "requests_per_minute": 600,
             *         "tokens_per_minute": null,
             *         "concurrent_requests": 20
             *       }
             *     ]
             */
            filtered_limits: components["schemas"]["FilteredLimits"][];
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month",
             *         "mode": "block",
             *         "alert_at": [],
             *         "unpriced": "reject",
             *         "reservation": "typical"
             *       }
             *     ]
             */
            budgets: components["schemas"]["Budget"][];
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": 20,
             *       "budgets": []
             *     }
             */
            each_end_user: components["schemas"]["EndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "requests_per_minute": null,
             *       "tokens_per_minute": null,
             *       "concurrent_requests": null,
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session",
             *           "mode": "block",
             *           "alert_at": [],
             *           "unpriced": "reject",
             *           "reservation": "typical"
             *         }
             *       ]
             *     }
             */
            each_session: components["schemas"]["SessionLimits"] | null;
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
        };
        /**
         * @example {
         *       "budgets": [
         *         {
         *           "usd": "5000.00",
         *           "period": "month",
         *           "providers": [
         *             "openai"
         *           ]
         *         }
         *       ]
         *     }
         */
        InstallationLimitsChange: {
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600
             *     }
             */
            limits?: components["schemas"]["NewLimits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "requests_per_minute": 60
             *       }
             *     ]
             */
            filtered_limits?: components["schemas"]["NewFilteredLimits"][] | null;
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewSharedBudget"][] | null;
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20
             *     }
             */
            each_end_user?: components["schemas"]["NewSharedEndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session"
             *         }
             *       ]
             *     }
             */
            each_session?: components["schemas"]["NewSharedSessionLimits"] | null;
        };
        /**
         * @example {
         *       "owner": "installation",
         *       "budgets": [
         *         {
         *           "usd": "100",
         *           "period": "day"
         *         }
         *       ]
         *     }
         */
        LimitPreview: {
            /**
             * @description Whose budgets they would be.
             * @enum {string}
             */
            owner: "installation" | "group" | "team" | "key";
            /**
             * Format: uuid
             * @description The team, key or group; absent for the installation.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            owner_id?: string;
            /**
             * @description The budgets.
             * @example [
             *       {
             *         "usd": "100",
             *         "period": "day"
             *       }
             *     ]
             */
            budgets: components["schemas"]["NewSharedBudget"][];
        };
        LimitPreviewResult: {
            /**
             * @description One for each budget, in their order.
             * @example [
             *       {
             *         "calls": 1200,
             *         "rejected": 40
             *       }
             *     ]
             */
            data: {
                /**
                 * @description Calls of the last 7 days that it would have counted.
                 * @example 1200
                 */
                calls: number;
                /**
                 * @description Those of them for which too little of the amount would have been left, at what they cost.
                 * @example 40
                 */
                rejected: number;
            }[];
        };
        /**
         * @example {
         *       "reason": "budget of the pilot extended"
         *     }
         */
        LimitReset: {
            /**
             * @description Why; recorded in the audit log.
             * @example budget of the pilot extended
             */
            reason: string;
            /**
             * @description Only this end user or session, as `GET /admin/v1/limits` shows it; absent: all of them.
             * @example n4bQgYhMfWWaL-qgxVrQFa
             */
            subject?: string;
        };
        PricePage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Price"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Price: {
            /**
             * Format: uuid
             * @description ID of the price.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Name of a provider, or of the price list of providers.
             * @example openai
             */
            catalog: string;
            /**
             * @description A model by its whole name, or the start of a name and `*`, in any case. The longest match applies.
             * @example gpt-4o*
             */
            model: string;
            /**
             * Format: date-time
             * @description The price applies to calls that start at this time or later.
             * @example 2026-01-31T12:00:00.000Z
             */
            effective_from: string;
            /**
             * @description USD per million input tokens; null: they are free.
             * @example 2.50
             */
            input: string | null;
            /**
             * @description USD per million tokens read from the cache; null: they cost what input costs.
             * @example 2.50
             */
            cached_input: string | null;
            /**
             * @description USD per million tokens written to the cache; null: they cost what input costs.
             * @example 2.50
             */
            cache_write: string | null;
            /**
             * @description USD per million tokens written to the cache for an hour; null: they cost what any cache write costs.
             * @example 2.50
             */
            cache_write_1h: string | null;
            /**
             * @description USD per million output tokens; null: they are free.
             * @example 2.50
             */
            output: string | null;
            /**
             * @description USD per call with token counts, besides its tokens.
             * @example 2.50
             */
            per_call: string | null;
            /**
             * @description Units with a price of their own: USD per million tokens, or per thousand searches, images, pages, seconds or characters. A call of which a unit such as `images` is not known has no cost.
             * @example {
             *       "web_searches": "10.00"
             *     }
             */
            extra: {
                /**
                 * @description USD per million of `reasoning_tokens`.
                 * @example 10.00
                 */
                reasoning_tokens?: string;
                /**
                 * @description USD per million of `input_audio_tokens`.
                 * @example 10.00
                 */
                input_audio_tokens?: string;
                /**
                 * @description USD per million of `cached_audio_tokens`.
                 * @example 10.00
                 */
                cached_audio_tokens?: string;
                /**
                 * @description USD per million of `output_audio_tokens`.
                 * @example 10.00
                 */
                output_audio_tokens?: string;
                /**
                 * @description USD per million of `input_image_tokens`.
                 * @example 10.00
                 */
                input_image_tokens?: string;
                /**
                 * @description USD per million of `cached_image_tokens`.
                 * @example 10.00
                 */
                cached_image_tokens?: string;
                /**
                 * @description USD per million of `output_image_tokens`.
                 * @example 10.00
                 */
                output_image_tokens?: string;
                /**
                 * @description USD per thousand of `web_searches`.
                 * @example 10.00
                 */
                web_searches?: string;
                /**
                 * @description USD per thousand of `search_units`.
                 * @example 10.00
                 */
                search_units?: string;
                /**
                 * @description USD per thousand of `file_searches`.
                 * @example 10.00
                 */
                file_searches?: string;
                /**
                 * @description USD per thousand of `code_sessions`.
                 * @example 10.00
                 */
                code_sessions?: string;
                /**
                 * @description USD per thousand of `input_audio_seconds`.
                 * @example 10.00
                 */
                input_audio_seconds?: string;
                /**
                 * @description USD per thousand of `output_audio_seconds`.
                 * @example 10.00
                 */
                output_audio_seconds?: string;
                /**
                 * @description USD per thousand of `input_characters`.
                 * @example 10.00
                 */
                input_characters?: string;
                /**
                 * @description USD per thousand of `pages`.
                 * @example 10.00
                 */
                pages?: string;
                /**
                 * @description USD per thousand of `annotated_pages`.
                 * @example 10.00
                 */
                annotated_pages?: string;
                /**
                 * @description USD per thousand of `images`.
                 * @example 10.00
                 */
                images?: string;
                /**
                 * @description USD per thousand of `video_seconds`.
                 * @example 10.00
                 */
                video_seconds?: string;
            } | null;
            /** @description Other prices for some calls. All that apply are put over the price in this order. */
            tiers: {
                /**
                 * @description For calls with more input tokens than this, for all of their tokens.
                 * @example 200000
                 */
                above?: number;
                /** @description For calls that start in this part of the UTC day. It may include midnight. */
                between?: (string)[];
                /**
                 * @description For calls of this service tier. Calls of a tier that no entry names have no cost, because tiers are priced differently.
                 * @example batch
                 */
                service_tier?: string;
                /**
                 * @description For images or videos of this size. A call of which it is not known has no cost.
                 * @example 1024x1024
                 */
                size?: string;
                /**
                 * @description For images or videos of this quality. A call of which it is not known has no cost.
                 * @example high
                 */
                quality?: string;
                /**
                 * @description In place of prices: what tokens cost, in parts of their usual price. Images, searches and other counted units keep their price.
                 * @example 0.5
                 */
                factor?: string;
                /**
                 * @description The same for tokens read from the cache. Absent: `factor`.
                 * @example 0.5
                 */
                cached_factor?: string;
                /**
                 * @description USD per million input tokens; null: they are free.
                 * @example 2.50
                 */
                input?: string | null;
                /**
                 * @description USD per million tokens read from the cache; null: they cost what input costs.
                 * @example 2.50
                 */
                cached_input?: string | null;
                /**
                 * @description USD per million tokens written to the cache; null: they cost what input costs.
                 * @example 2.50
                 */
                cache_write?: string | null;
                /**
                 * @description USD per million tokens written to the cache for an hour; null: they cost what any cache write costs.
                 * @example 2.50
                 */
                cache_write_1h?: string | null;
                /**
                 * @description USD per million output tokens; null: they are free.
                 * @example 2.50
                 */
                output?: string | null;
                /**
                 * @description Units with a price of their own: USD per million tokens, or per thousand searches, images, pages, seconds or characters. A call of which a unit such as `images` is not known has no cost.
                 * @example {
                 *       "web_searches": "10.00"
                 *     }
                 */
                extra?: {
                    /**
                     * @description USD per million of `reasoning_tokens`.
                     * @example 10.00
                     */
                    reasoning_tokens?: string;
                    /**
                     * @description USD per million of `input_audio_tokens`.
                     * @example 10.00
                     */
                    input_audio_tokens?: string;
                    /**
                     * @description USD per million of `cached_audio_tokens`.
                     * @example 10.00
                     */
                    cached_audio_tokens?: string;
                    /**
                     * @description USD per million of `output_audio_tokens`.
                     * @example 10.00
                     */
                    output_audio_tokens?: string;
                    /**
                     * @description USD per million of `input_image_tokens`.
                     * @example 10.00
                     */
                    input_image_tokens?: string;
                    /**
                     * @description USD per million of `cached_image_tokens`.
                     * @example 10.00
                     */
                    cached_image_tokens?: string;
                    /**
                     * @description USD per million of `output_image_tokens`.
                     * @example 10.00
                     */
                    output_image_tokens?: string;
                    /**
                     * @description USD per thousand of `web_searches`.
                     * @example 10.00
                     */
                    web_searches?: string;
                    /**
                     * @description USD per thousand of `search_units`.
                     * @example 10.00
                     */
                    search_units?: string;
                    /**
                     * @description USD per thousand of `file_searches`.
                     * @example 10.00
                     */
                    file_searches?: string;
                    /**
                     * @description USD per thousand of `code_sessions`.
                     * @example 10.00
                     */
                    code_sessions?: string;
                    /**
                     * @description USD per thousand of `input_audio_seconds`.
                     * @example 10.00
                     */
                    input_audio_seconds?: string;
                    /**
                     * @description USD per thousand of `output_audio_seconds`.
                     * @example 10.00
                     */
                    output_audio_seconds?: string;
                    /**
                     * @description USD per thousand of `input_characters`.
                     * @example 10.00
                     */
                    input_characters?: string;
                    /**
                     * @description USD per thousand of `pages`.
                     * @example 10.00
                     */
                    pages?: string;
                    /**
                     * @description USD per thousand of `annotated_pages`.
                     * @example 10.00
                     */
                    annotated_pages?: string;
                    /**
                     * @description USD per thousand of `images`.
                     * @example 10.00
                     */
                    images?: string;
                    /**
                     * @description USD per thousand of `video_seconds`.
                     * @example 10.00
                     */
                    video_seconds?: string;
                } | null;
            }[] | null;
            /**
             * @description A remark.
             * @example Contract of January
             */
            note: string | null;
            /**
             * @description `catalog`: taken from the catalog that comes with Postern; `custom`: set by people.
             * @enum {string}
             */
            source: "catalog" | "custom";
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /**
             * Format: date-time
             * @description When it was stored.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
        };
        /**
         * @example {
         *       "catalog": "mine",
         *       "model": "llama-3*",
         *       "input": "0.20",
         *       "output": "0.60"
         *     }
         */
        NewPrice: {
            /**
             * @description Name of a provider, or of the price list of providers.
             * @example openai
             */
            catalog: string;
            /**
             * @description A model by its whole name, or the start of a name and `*`, in any case. The longest match applies.
             * @example gpt-4o*
             */
            model: string;
            /**
             * Format: date-time
             * @description The price applies to calls that start at this time or later. Absent: it has always applied.
             * @example 2026-01-31T12:00:00.000Z
             */
            effective_from?: string;
            /**
             * @description USD per million input tokens; null: they are free.
             * @example 2.50
             */
            input?: string | null;
            /**
             * @description USD per million tokens read from the cache; null: they cost what input costs.
             * @example 2.50
             */
            cached_input?: string | null;
            /**
             * @description USD per million tokens written to the cache; null: they cost what input costs.
             * @example 2.50
             */
            cache_write?: string | null;
            /**
             * @description USD per million tokens written to the cache for an hour; null: they cost what any cache write costs.
             * @example 2.50
             */
            cache_write_1h?: string | null;
            /**
             * @description USD per million output tokens; null: they are free.
             * @example 2.50
             */
            output?: string | null;
            /**
             * @description USD per call with token counts, besides its tokens.
             * @example 2.50
             */
            per_call?: string | null;
            /**
             * @description Units with a price of their own: USD per million tokens, or per thousand searches, images, pages, seconds or characters. A call of which a unit such as `images` is not known has no cost.
             * @example {
             *       "web_searches": "10.00"
             *     }
             */
            extra?: {
                /**
                 * @description USD per million of `reasoning_tokens`.
                 * @example 10.00
                 */
                reasoning_tokens?: string;
                /**
                 * @description USD per million of `input_audio_tokens`.
                 * @example 10.00
                 */
                input_audio_tokens?: string;
                /**
                 * @description USD per million of `cached_audio_tokens`.
                 * @example 10.00
                 */
                cached_audio_tokens?: string;
                /**
                 * @description USD per million of `output_audio_tokens`.
                 * @example 10.00
                 */
                output_audio_tokens?: string;
                /**
                 * @description USD per million of `input_image_tokens`.
                 * @example 10.00
                 */
                input_image_tokens?: string;
                /**
                 * @description USD per million of `cached_image_tokens`.
                 * @example 10.00
                 */
                cached_image_tokens?: string;
                /**
                 * @description USD per million of `output_image_tokens`.
                 * @example 10.00
                 */
                output_image_tokens?: string;
                /**
                 * @description USD per thousand of `web_searches`.
                 * @example 10.00
                 */
                web_searches?: string;
                /**
                 * @description USD per thousand of `search_units`.
                 * @example 10.00
                 */
                search_units?: string;
                /**
                 * @description USD per thousand of `file_searches`.
                 * @example 10.00
                 */
                file_searches?: string;
                /**
                 * @description USD per thousand of `code_sessions`.
                 * @example 10.00
                 */
                code_sessions?: string;
                /**
                 * @description USD per thousand of `input_audio_seconds`.
                 * @example 10.00
                 */
                input_audio_seconds?: string;
                /**
                 * @description USD per thousand of `output_audio_seconds`.
                 * @example 10.00
                 */
                output_audio_seconds?: string;
                /**
                 * @description USD per thousand of `input_characters`.
                 * @example 10.00
                 */
                input_characters?: string;
                /**
                 * @description USD per thousand of `pages`.
                 * @example 10.00
                 */
                pages?: string;
                /**
                 * @description USD per thousand of `annotated_pages`.
                 * @example 10.00
                 */
                annotated_pages?: string;
                /**
                 * @description USD per thousand of `images`.
                 * @example 10.00
                 */
                images?: string;
                /**
                 * @description USD per thousand of `video_seconds`.
                 * @example 10.00
                 */
                video_seconds?: string;
            } | null;
            /** @description Other prices for some calls. All that apply are put over the price in this order. */
            tiers?: {
                /**
                 * @description For calls with more input tokens than this, for all of their tokens.
                 * @example 200000
                 */
                above?: number;
                /** @description For calls that start in this part of the UTC day. It may include midnight. */
                between?: (string)[];
                /**
                 * @description For calls of this service tier. Calls of a tier that no entry names have no cost, because tiers are priced differently.
                 * @example batch
                 */
                service_tier?: string;
                /**
                 * @description For images or videos of this size. A call of which it is not known has no cost.
                 * @example 1024x1024
                 */
                size?: string;
                /**
                 * @description For images or videos of this quality. A call of which it is not known has no cost.
                 * @example high
                 */
                quality?: string;
                /**
                 * @description In place of prices: what tokens cost, in parts of their usual price. Images, searches and other counted units keep their price.
                 * @example 0.5
                 */
                factor?: string;
                /**
                 * @description The same for tokens read from the cache. Absent: `factor`.
                 * @example 0.5
                 */
                cached_factor?: string;
                /**
                 * @description USD per million input tokens; null: they are free.
                 * @example 2.50
                 */
                input?: string | null;
                /**
                 * @description USD per million tokens read from the cache; null: they cost what input costs.
                 * @example 2.50
                 */
                cached_input?: string | null;
                /**
                 * @description USD per million tokens written to the cache; null: they cost what input costs.
                 * @example 2.50
                 */
                cache_write?: string | null;
                /**
                 * @description USD per million tokens written to the cache for an hour; null: they cost what any cache write costs.
                 * @example 2.50
                 */
                cache_write_1h?: string | null;
                /**
                 * @description USD per million output tokens; null: they are free.
                 * @example 2.50
                 */
                output?: string | null;
                /**
                 * @description Units with a price of their own: USD per million tokens, or per thousand searches, images, pages, seconds or characters. A call of which a unit such as `images` is not known has no cost.
                 * @example {
                 *       "web_searches": "10.00"
                 *     }
                 */
                extra?: {
                    /**
                     * @description USD per million of `reasoning_tokens`.
                     * @example 10.00
                     */
                    reasoning_tokens?: string;
                    /**
                     * @description USD per million of `input_audio_tokens`.
                     * @example 10.00
                     */
                    input_audio_tokens?: string;
                    /**
                     * @description USD per million of `cached_audio_tokens`.
                     * @example 10.00
                     */
                    cached_audio_tokens?: string;
                    /**
                     * @description USD per million of `output_audio_tokens`.
                     * @example 10.00
                     */
                    output_audio_tokens?: string;
                    /**
                     * @description USD per million of `input_image_tokens`.
                     * @example 10.00
                     */
                    input_image_tokens?: string;
                    /**
                     * @description USD per million of `cached_image_tokens`.
                     * @example 10.00
                     */
                    cached_image_tokens?: string;
                    /**
                     * @description USD per million of `output_image_tokens`.
                     * @example 10.00
                     */
                    output_image_tokens?: string;
                    /**
                     * @description USD per thousand of `web_searches`.
                     * @example 10.00
                     */
                    web_searches?: string;
                    /**
                     * @description USD per thousand of `search_units`.
                     * @example 10.00
                     */
                    search_units?: string;
                    /**
                     * @description USD per thousand of `file_searches`.
                     * @example 10.00
                     */
                    file_searches?: string;
                    /**
                     * @description USD per thousand of `code_sessions`.
                     * @example 10.00
                     */
                    code_sessions?: string;
                    /**
                     * @description USD per thousand of `input_audio_seconds`.
                     * @example 10.00
                     */
                    input_audio_seconds?: string;
                    /**
                     * @description USD per thousand of `output_audio_seconds`.
                     * @example 10.00
                     */
                    output_audio_seconds?: string;
                    /**
                     * @description USD per thousand of `input_characters`.
                     * @example 10.00
                     */
                    input_characters?: string;
                    /**
                     * @description USD per thousand of `pages`.
                     * @example 10.00
                     */
                    pages?: string;
                    /**
                     * @description USD per thousand of `annotated_pages`.
                     * @example 10.00
                     */
                    annotated_pages?: string;
                    /**
                     * @description USD per thousand of `images`.
                     * @example 10.00
                     */
                    images?: string;
                    /**
                     * @description USD per thousand of `video_seconds`.
                     * @example 10.00
                     */
                    video_seconds?: string;
                } | null;
            }[] | null;
            /**
             * @description A remark.
             * @example Contract of January
             */
            note?: string | null;
        };
        PriceResolution: {
            /**
             * @description Name of the provider.
             * @example openai
             */
            provider: string;
            /**
             * @description The provider's price list; null if it has none.
             * @example openai
             */
            catalog: string | null;
            /**
             * @description The model as calls name it.
             * @example gpt-4o-mini
             */
            model: string;
            /**
             * Format: date-time
             * @description The time asked for.
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            /** @description The price that applies; null if none does. */
            price: components["schemas"]["Price"] | null;
            /**
             * @description Why this price, or why none.
             * @example The price of the catalog for gpt-4o-mini.
             */
            reason: string;
        };
        MissingPrices: {
            /** @description The models, by provider. */
            data: {
                /**
                 * @description Name of the provider.
                 * @example openai
                 */
                provider: string;
                /**
                 * @description The provider's price list; null if it has none.
                 * @example openai
                 */
                catalog: string | null;
                /**
                 * @description The model as calls name it.
                 * @example gpt-4o-mini
                 */
                model: string;
                /**
                 * @description First UTC day of such a call.
                 * @example 2026-01-29
                 */
                first_day: string;
                /**
                 * @description Last UTC day of such a call.
                 * @example 2026-01-31
                 */
                last_day: string;
                /**
                 * @description Calls with tokens or other units and without a cost.
                 * @example 120
                 */
                calls: number;
            }[];
            /**
             * Format: date-time
             * @description Calls that started at this time or later are counted.
             * @example 2026-01-31T12:00:00.000Z
             */
            from: string;
            /**
             * Format: date-time
             * @description Calls that started before this time are counted.
             * @example 2026-01-31T12:00:00.000Z
             */
            to: string;
        };
        /**
         * @example {
         *       "from": "2026-01-01T00:00:00Z",
         *       "to": "2026-02-01T00:00:00Z",
         *       "dry_run": true
         *     }
         */
        Repricing: {
            /**
             * Format: date-time
             * @description Calls that started at this time or later.
             * @example 2026-01-31T12:00:00.000Z
             */
            from: string;
            /**
             * Format: date-time
             * @description Calls that started before this time.
             * @example 2026-01-31T12:00:00.000Z
             */
            to: string;
            /**
             * @description Only calls of this model.
             * @example gpt-4o-mini
             */
            model?: string;
            /**
             * @description Only count what would change.
             * @default false
             */
            dry_run?: boolean;
            /**
             * @description `next_cursor` of the response before.
             * @example AaICky58duGSEqvtqqRdvw
             */
            cursor?: string;
        };
        Repriced: {
            /**
             * @description Calls with tokens or other units whose cost the provider did not report, of this request.
             * @example 1200
             */
            rows: number;
            /**
             * @description Calls whose cost or price changed, or would change.
             * @example 12
             */
            changed: number;
            /**
             * @description Sum of their costs in USD.
             * @example 12.345678900
             */
            cost_before: string;
            /**
             * @description Sum of their costs in USD.
             * @example 12.345678900
             */
            cost_after: string;
            /** @description True if nothing was changed. */
            dry_run: boolean;
            /**
             * @description Send the request again with this as `cursor` to go on; null at the end of the range.
             * @example MTc2NzIyNTYwMDAwMCAwMTg5MGE1ZC1hYzk2LTc3NGItYmNjZS1iMzAyMDk5YTgwNTc
             */
            next_cursor: string | null;
        };
        /**
         * @example {
         *       "output": "0.50"
         *     }
         */
        PriceChange: {
            /**
             * Format: date-time
             * @description The price applies to calls that start at this time or later.
             * @example 2026-01-31T12:00:00.000Z
             */
            effective_from?: string;
            /**
             * @description USD per million input tokens; null: they are free.
             * @example 2.50
             */
            input?: string | null;
            /**
             * @description USD per million tokens read from the cache; null: they cost what input costs.
             * @example 2.50
             */
            cached_input?: string | null;
            /**
             * @description USD per million tokens written to the cache; null: they cost what input costs.
             * @example 2.50
             */
            cache_write?: string | null;
            /**
             * @description USD per million tokens written to the cache for an hour; null: they cost what any cache write costs.
             * @example 2.50
             */
            cache_write_1h?: string | null;
            /**
             * @description USD per million output tokens; null: they are free.
             * @example 2.50
             */
            output?: string | null;
            /**
             * @description USD per call with token counts, besides its tokens.
             * @example 2.50
             */
            per_call?: string | null;
            /**
             * @description Units with a price of their own: USD per million tokens, or per thousand searches, images, pages, seconds or characters. A call of which a unit such as `images` is not known has no cost.
             * @example {
             *       "web_searches": "10.00"
             *     }
             */
            extra?: {
                /**
                 * @description USD per million of `reasoning_tokens`.
                 * @example 10.00
                 */
                reasoning_tokens?: string;
                /**
                 * @description USD per million of `input_audio_tokens`.
                 * @example 10.00
                 */
                input_audio_tokens?: string;
                /**
                 * @description USD per million of `cached_audio_tokens`.
                 * @example 10.00
                 */
                cached_audio_tokens?: string;
                /**
                 * @description USD per million of `output_audio_tokens`.
                 * @example 10.00
                 */
                output_audio_tokens?: string;
                /**
                 * @description USD per million of `input_image_tokens`.
                 * @example 10.00
                 */
                input_image_tokens?: string;
                /**
                 * @description USD per million of `cached_image_tokens`.
                 * @example 10.00
                 */
                cached_image_tokens?: string;
                /**
                 * @description USD per million of `output_image_tokens`.
                 * @example 10.00
                 */
                output_image_tokens?: string;
                /**
                 * @description USD per thousand of `web_searches`.
                 * @example 10.00
                 */
                web_searches?: string;
                /**
                 * @description USD per thousand of `search_units`.
                 * @example 10.00
                 */
                search_units?: string;
                /**
                 * @description USD per thousand of `file_searches`.
                 * @example 10.00
                 */
                file_searches?: string;
                /**
                 * @description USD per thousand of `code_sessions`.
                 * @example 10.00
                 */
                code_sessions?: string;
                /**
                 * @description USD per thousand of `input_audio_seconds`.
                 * @example 10.00
                 */
                input_audio_seconds?: string;
                /**
                 * @description USD per thousand of `output_audio_seconds`.
                 * @example 10.00
                 */
                output_audio_seconds?: string;
                /**
                 * @description USD per thousand of `input_characters`.
                 * @example 10.00
                 */
                input_characters?: string;
                /**
                 * @description USD per thousand of `pages`.
                 * @example 10.00
                 */
                pages?: string;
                /**
                 * @description USD per thousand of `annotated_pages`.
                 * @example 10.00
                 */
                annotated_pages?: string;
                /**
                 * @description USD per thousand of `images`.
                 * @example 10.00
                 */
                images?: string;
                /**
                 * @description USD per thousand of `video_seconds`.
                 * @example 10.00
                 */
                video_seconds?: string;
            } | null;
            /** @description Other prices for some calls. All that apply are put over the price in this order. */
            tiers?: {
                /**
                 * @description For calls with more input tokens than this, for all of their tokens.
                 * @example 200000
                 */
                above?: number;
                /** @description For calls that start in this part of the UTC day. It may include midnight. */
                between?: (string)[];
                /**
                 * @description For calls of this service tier. Calls of a tier that no entry names have no cost, because tiers are priced differently.
                 * @example batch
                 */
                service_tier?: string;
                /**
                 * @description For images or videos of this size. A call of which it is not known has no cost.
                 * @example 1024x1024
                 */
                size?: string;
                /**
                 * @description For images or videos of this quality. A call of which it is not known has no cost.
                 * @example high
                 */
                quality?: string;
                /**
                 * @description In place of prices: what tokens cost, in parts of their usual price. Images, searches and other counted units keep their price.
                 * @example 0.5
                 */
                factor?: string;
                /**
                 * @description The same for tokens read from the cache. Absent: `factor`.
                 * @example 0.5
                 */
                cached_factor?: string;
                /**
                 * @description USD per million input tokens; null: they are free.
                 * @example 2.50
                 */
                input?: string | null;
                /**
                 * @description USD per million tokens read from the cache; null: they cost what input costs.
                 * @example 2.50
                 */
                cached_input?: string | null;
                /**
                 * @description USD per million tokens written to the cache; null: they cost what input costs.
                 * @example 2.50
                 */
                cache_write?: string | null;
                /**
                 * @description USD per million tokens written to the cache for an hour; null: they cost what any cache write costs.
                 * @example 2.50
                 */
                cache_write_1h?: string | null;
                /**
                 * @description USD per million output tokens; null: they are free.
                 * @example 2.50
                 */
                output?: string | null;
                /**
                 * @description Units with a price of their own: USD per million tokens, or per thousand searches, images, pages, seconds or characters. A call of which a unit such as `images` is not known has no cost.
                 * @example {
                 *       "web_searches": "10.00"
                 *     }
                 */
                extra?: {
                    /**
                     * @description USD per million of `reasoning_tokens`.
                     * @example 10.00
                     */
                    reasoning_tokens?: string;
                    /**
                     * @description USD per million of `input_audio_tokens`.
                     * @example 10.00
                     */
                    input_audio_tokens?: string;
                    /**
                     * @description USD per million of `cached_audio_tokens`.
                     * @example 10.00
                     */
                    cached_audio_tokens?: string;
                    /**
                     * @description USD per million of `output_audio_tokens`.
                     * @example 10.00
                     */
                    output_audio_tokens?: string;
                    /**
                     * @description USD per million of `input_image_tokens`.
                     * @example 10.00
                     */
                    input_image_tokens?: string;
                    /**
                     * @description USD per million of `cached_image_tokens`.
                     * @example 10.00
                     */
                    cached_image_tokens?: string;
                    /**
                     * @description USD per million of `output_image_tokens`.
                     * @example 10.00
                     */
                    output_image_tokens?: string;
                    /**
                     * @description USD per thousand of `web_searches`.
                     * @example 10.00
                     */
                    web_searches?: string;
                    /**
                     * @description USD per thousand of `search_units`.
                     * @example 10.00
                     */
                    search_units?: string;
                    /**
                     * @description USD per thousand of `file_searches`.
                     * @example 10.00
                     */
                    file_searches?: string;
                    /**
                     * @description USD per thousand of `code_sessions`.
                     * @example 10.00
                     */
                    code_sessions?: string;
                    /**
                     * @description USD per thousand of `input_audio_seconds`.
                     * @example 10.00
                     */
                    input_audio_seconds?: string;
                    /**
                     * @description USD per thousand of `output_audio_seconds`.
                     * @example 10.00
                     */
                    output_audio_seconds?: string;
                    /**
                     * @description USD per thousand of `input_characters`.
                     * @example 10.00
                     */
                    input_characters?: string;
                    /**
                     * @description USD per thousand of `pages`.
                     * @example 10.00
                     */
                    pages?: string;
                    /**
                     * @description USD per thousand of `annotated_pages`.
                     * @example 10.00
                     */
                    annotated_pages?: string;
                    /**
                     * @description USD per thousand of `images`.
                     * @example 10.00
                     */
                    images?: string;
                    /**
                     * @description USD per thousand of `video_seconds`.
                     * @example 10.00
                     */
                    video_seconds?: string;
                } | null;
            }[] | null;
            /**
             * @description A remark.
             * @example Contract of January
             */
            note?: string | null;
        };
        WebhookPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Webhook"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Webhook: {
            /**
             * Format: uuid
             * @description ID of the webhook.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Scheme, host and port of the URL, then `/…`: its path and query may be a credential and are not shown.
             * @example https://alerts.example.com/…
             */
            url: string;
            /**
             * @description Types of the events that are delivered.
             * @example [
             *       "budget.threshold",
             *       "budget.exhausted"
             *     ]
             */
            events: ("budget.threshold" | "budget.exhausted" | "provider.failing" | "provider.recovered" | "key.expiring" | "price.missing" | "journal.degraded" | "sink.lagging" | "refusals.high" | "job.lost" | "cost.unknown" | "trust.failing" | "issuer.unavailable" | "policy.failing")[];
            /**
             * @description `standard`: JSON, signed as Standard Webhooks say; `slack`: a message for an incoming webhook of Slack, not signed.
             * @enum {string}
             */
            format: "standard" | "slack";
            /**
             * @description `unreadable`: the URL and the secret were encrypted with another master key, so nothing can be delivered.
             * @enum {string}
             */
            secret_state: "sealed" | "unreadable";
            /**
             * @description Events that are not delivered yet.
             * @example 0
             */
            waiting: number;
            /** @description The delivery that was attempted last; null: none yet. */
            last_delivery: components["schemas"]["WebhookDelivery"] | null;
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /**
             * Format: date-time
             * @description When the webhook was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the webhook was last changed.
             * @example 2026-01-31T12:00:00.000Z
             */
            updated_at: string;
        };
        WebhookDelivery: {
            /**
             * Format: uuid
             * @description ID of the event: `webhook-id`.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            event_id: string;
            /**
             * @description Type of the event.
             * @enum {string}
             */
            type: "budget.threshold" | "budget.exhausted" | "provider.failing" | "provider.recovered" | "key.expiring" | "price.missing" | "journal.degraded" | "sink.lagging" | "refusals.high" | "job.lost" | "cost.unknown" | "trust.failing" | "issuer.unavailable" | "policy.failing";
            /**
             * @description `retrying`: another attempt follows; `failed`: the last attempt has failed.
             * @enum {string}
             */
            state: "delivered" | "retrying" | "failed";
            /**
             * @description Attempts so far, at most 8 in 24 hours.
             * @example 1
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When the last attempt began.
             * @example 2026-01-31T12:00:00.000Z
             */
            attempted_at: string;
            /**
             * Format: date-time
             * @description When the next attempt begins; null if none follows.
             * @example 2026-01-31T12:00:00.000Z
             */
            next_attempt_at: string | null;
            /**
             * @description HTTP status of the last attempt; null without a response.
             * @example 204
             */
            status: number | null;
            /**
             * @description Why the last attempt failed, as in a test; null: it succeeded, or is under way.
             * @example null
             */
            error: string | null;
        };
        /**
         * @example {
         *       "url": "https://alerts.example.com/postern",
         *       "events": [
         *         "budget.threshold",
         *         "budget.exhausted"
         *       ]
         *     }
         */
        NewWebhook: {
            /**
             * @description Where events are sent with POST. By the rules for providers: `https` for public addresses, and no link-local or cloud metadata addresses.
             * @example https://alerts.example.com/postern
             */
            url: string;
            /**
             * @description Types of the events that are delivered.
             * @example [
             *       "budget.threshold",
             *       "budget.exhausted"
             *     ]
             */
            events: ("budget.threshold" | "budget.exhausted" | "provider.failing" | "provider.recovered" | "key.expiring" | "price.missing" | "journal.degraded" | "sink.lagging" | "refusals.high" | "job.lost" | "cost.unknown" | "trust.failing" | "issuer.unavailable" | "policy.failing")[];
            /**
             * @description `standard`: JSON, signed as Standard Webhooks say; `slack`: a message for an incoming webhook of Slack, not signed.
             * @default standard
             * @enum {string}
             */
            format?: "standard" | "slack";
        };
        CreatedWebhook: {
            /**
             * Format: uuid
             * @description ID of the webhook.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Scheme, host and port of the URL, then `/…`: its path and query may be a credential and are not shown.
             * @example https://alerts.example.com/…
             */
            url: string;
            /**
             * @description Types of the events that are delivered.
             * @example [
             *       "budget.threshold",
             *       "budget.exhausted"
             *     ]
             */
            events: ("budget.threshold" | "budget.exhausted" | "provider.failing" | "provider.recovered" | "key.expiring" | "price.missing" | "journal.degraded" | "sink.lagging" | "refusals.high" | "job.lost" | "cost.unknown" | "trust.failing" | "issuer.unavailable" | "policy.failing")[];
            /**
             * @description `standard`: JSON, signed as Standard Webhooks say; `slack`: a message for an incoming webhook of Slack, not signed.
             * @enum {string}
             */
            format: "standard" | "slack";
            /**
             * @description `unreadable`: the URL and the secret were encrypted with another master key, so nothing can be delivered.
             * @enum {string}
             */
            secret_state: "sealed" | "unreadable";
            /**
             * @description Events that are not delivered yet.
             * @example 0
             */
            waiting: number;
            /** @description The delivery that was attempted last; null: none yet. */
            last_delivery: components["schemas"]["WebhookDelivery"] | null;
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /**
             * Format: date-time
             * @description When the webhook was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the webhook was last changed.
             * @example 2026-01-31T12:00:00.000Z
             */
            updated_at: string;
            /**
             * @description Verifies signatures. Shown only once; null for `slack`.
             * @example whsec_…
             */
            secret: string | null;
        };
        /**
         * @example {
         *       "events": [
         *         "budget.threshold",
         *         "budget.exhausted"
         *       ]
         *     }
         */
        WebhookChange: {
            /**
             * @description Where events are sent with POST. By the rules for providers: `https` for public addresses, and no link-local or cloud metadata addresses.
             * @example https://alerts.example.com/postern
             */
            url?: string;
            /**
             * @description Types of the events that are delivered.
             * @example [
             *       "budget.threshold",
             *       "budget.exhausted"
             *     ]
             */
            events?: ("budget.threshold" | "budget.exhausted" | "provider.failing" | "provider.recovered" | "key.expiring" | "price.missing" | "journal.degraded" | "sink.lagging" | "refusals.high" | "job.lost" | "cost.unknown" | "trust.failing" | "issuer.unavailable" | "policy.failing")[];
        };
        WebhookDeliveryPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["ListedWebhookDelivery"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        ListedWebhookDelivery: {
            /**
             * Format: uuid
             * @description ID of the event: `webhook-id`.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            event_id: string;
            /**
             * @description Type of the event.
             * @enum {string}
             */
            type: "budget.threshold" | "budget.exhausted" | "provider.failing" | "provider.recovered" | "key.expiring" | "price.missing" | "journal.degraded" | "sink.lagging" | "refusals.high" | "job.lost" | "cost.unknown" | "trust.failing" | "issuer.unavailable" | "policy.failing";
            /**
             * @description `waiting`: not attempted yet; `retrying`: another attempt follows; `failed`: the last attempt has failed.
             * @enum {string}
             */
            state: "waiting" | "delivered" | "retrying" | "failed";
            /**
             * @description Attempts so far, at most 8 in 24 hours.
             * @example 1
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When the last attempt began; null: none yet.
             * @example 2026-01-31T12:00:00.000Z
             */
            attempted_at: string | null;
            /**
             * Format: date-time
             * @description When the next attempt begins; null if none follows.
             * @example 2026-01-31T12:00:00.000Z
             */
            next_attempt_at: string | null;
            /**
             * @description HTTP status of the last attempt; null without a response.
             * @example 204
             */
            status: number | null;
            /**
             * @description Why the last attempt failed, as in a test; null: it succeeded, or is under way.
             * @example null
             */
            error: string | null;
            /**
             * Format: date-time
             * @description When the event occurred.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * @description `data` of the message.
             * @example {
             *       "team": "search",
             *       "key": "ci"
             *     }
             */
            data: {
                [key: string]: unknown;
            };
            /**
             * @description Why the last attempt failed, in one sentence, with the remedy; null as `error`.
             * @example null
             */
            message: string | null;
        };
        /**
         * @example {
         *       "event_id": "01890a5d-ac96-774b-bcce-b302099a8057"
         *     }
         */
        WebhookReplay: {
            /**
             * @description ID of the event, from its delivery.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            event_id: string;
        };
        WebhookTest: {
            /** @description True if the receiver responded with a status from 200 to 299. */
            ok: boolean;
            /**
             * @description The result, for programs.
             * @enum {string}
             */
            code: "ok" | "name_not_resolved" | "refused" | "unreachable" | "timeout" | "tls" | "forbidden_address" | "not_http" | "redirect" | "unexpected_status";
            /**
             * @description The result in one sentence, with the remedy.
             * @example OK: the receiver accepted the event.
             */
            message: string;
            /**
             * @description HTTP status of the response; null if there was none.
             * @example 204
             */
            status: number | null;
            /**
             * @description Milliseconds that the test took.
             * @example 85.2
             */
            duration_ms: number;
        };
        PolicyPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Policy"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Policy: {
            /**
             * Format: uuid
             * @description ID of the policy.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Its name, unique.
             * @example dlp
             */
            name: string;
            /**
             * @description Scheme, host and port of the URL; `/…` if there is more, which may be a credential and is not shown.
             * @example https://filter.example.com/…
             */
            url: string;
            /**
             * @description `unreadable`: the URL and the secret were encrypted with another master key, so calls get 503.
             * @enum {string}
             */
            secret_state: "sealed" | "unreadable";
            /**
             * @description About which calls the policy is asked: those of the teams and of the keys, to the models. Absent or null members limit nothing.
             * @example {
             *       "teams": [
             *         "support"
             *       ],
             *       "keys": null,
             *       "models": null
             *     }
             */
            applies_to: {
                /**
                 * @description Names of teams.
                 * @example [
                 *       "support"
                 *     ]
                 */
                teams: string[] | null;
                /**
                 * @description Keys as `team/name`.
                 * @example null
                 */
                keys: string[] | null;
                /**
                 * @description Names of models, in which `*` stands for any characters. A call whose model is not known for certain may be to any.
                 * @example null
                 */
                models: string[] | null;
            };
            /**
             * @description `head`: the policy gets facts of the call; `body`: the request body as well, and WebSockets of its keys are rejected.
             * @enum {string}
             */
            send: "head" | "body";
            /**
             * @description Milliseconds that a decision may take, from 10 to 30,000.
             * @example 300
             */
            timeout_ms: number;
            /**
             * @description What happens to a call if the receiver does not decide: `reject` (503 `policy_unavailable`) or `allow`.
             * @enum {string}
             */
            on_failure: "reject" | "allow";
            /**
             * @description Seconds that a decision counts for calls with the same team, key, end user, model, endpoint, tags and, with `send: body`, body and its type; 0: each call is asked about.
             * @example 0
             */
            cache_seconds: number;
            /**
             * @description Policies are asked in ascending order, those with the same by name.
             * @example 0
             */
            order: number;
            /** @description If false, the policy is not asked. */
            enabled: boolean;
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /**
             * Format: date-time
             * @description When the policy was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the policy was last changed.
             * @example 2026-01-31T12:00:00.000Z
             */
            updated_at: string;
        };
        /**
         * @example {
         *       "name": "dlp",
         *       "url": "https://filter.example.com/decide",
         *       "secret": "whsec_NFyohv2Kx5m8bLcg0hBzj1NQe7HVYd0m1qgXkz3yD2E="
         *     }
         */
        NewPolicy: {
            /**
             * @description A name for it, also in metrics and rejections.
             * @example dlp
             */
            name: string;
            /**
             * @description Where policies are asked with POST. By the rules for providers: `https` for public addresses, and no link-local or cloud metadata addresses.
             * @example https://filter.example.com/decide
             */
            url: string;
            /**
             * @description Signs each request, as Standard Webhooks say: `whsec_` and the base64 of 24 to 64 bytes. Never shown.
             * @example whsec_NFyohv2Kx5m8bLcg0hBzj1NQe7HVYd0m1qgXkz3yD2E=
             */
            secret: string;
            /** @description About which calls the policy is asked: those of the teams and of the keys, to the models. Absent or null members limit nothing. */
            applies_to?: components["schemas"]["PolicyScope"];
            /**
             * @description `head`: the policy gets facts of the call; `body`: the request body as well, and WebSockets of its keys are rejected.
             * @default head
             * @enum {string}
             */
            send?: "head" | "body";
            /**
             * @description Milliseconds that a decision may take, from 10 to 30,000.
             * @default 300
             * @example 300
             */
            timeout_ms?: number;
            /**
             * @description What happens to a call if the receiver does not decide: `reject` (503 `policy_unavailable`) or `allow`.
             * @default reject
             * @enum {string}
             */
            on_failure?: "reject" | "allow";
            /**
             * @description Seconds that a decision counts for calls with the same team, key, end user, model, endpoint, tags and, with `send: body`, body and its type; 0: each call is asked about.
             * @default 0
             * @example 0
             */
            cache_seconds?: number;
            /**
             * @description Policies are asked in ascending order, those with the same by name.
             * @default 0
             * @example 0
             */
            order?: number;
            /**
             * @description If false, the policy is not asked.
             * @default true
             */
            enabled?: boolean;
        };
        /**
         * @example {
         *       "teams": [
         *         "support"
         *       ]
         *     }
         */
        PolicyScope: {
            /**
             * @description Names or IDs of teams.
             * @default null
             * @example [
             *       "support"
             *     ]
             */
            teams?: string[] | null;
            /**
             * @description Keys, each by its ID or as `team/name`, beside those of the teams.
             * @default null
             * @example [
             *       "search/ci"
             *     ]
             */
            keys?: string[] | null;
            /**
             * @description Names of models, in which `*` stands for any characters. A call whose model is not known for certain may be to any.
             * @example [
             *       "gpt-5*"
             *     ]
             */
            models?: string[] | null;
        };
        /**
         * @example {
         *       "enabled": false
         *     }
         */
        PolicyChange: {
            /**
             * @description A name for it, also in metrics and rejections.
             * @example dlp
             */
            name?: string;
            /**
             * @description Where policies are asked with POST. By the rules for providers: `https` for public addresses, and no link-local or cloud metadata addresses.
             * @example https://filter.example.com/decide
             */
            url?: string;
            /**
             * @description Signs each request, as Standard Webhooks say: `whsec_` and the base64 of 24 to 64 bytes. Never shown.
             * @example whsec_NFyohv2Kx5m8bLcg0hBzj1NQe7HVYd0m1qgXkz3yD2E=
             */
            secret?: string;
            /** @description About which calls the policy is asked: those of the teams and of the keys, to the models. Absent or null members limit nothing. */
            applies_to?: components["schemas"]["PolicyScope"];
            /**
             * @description `head`: the policy gets facts of the call; `body`: the request body as well, and WebSockets of its keys are rejected.
             * @enum {string}
             */
            send?: "head" | "body";
            /**
             * @description Milliseconds that a decision may take, from 10 to 30,000.
             * @example 300
             */
            timeout_ms?: number;
            /**
             * @description What happens to a call if the receiver does not decide: `reject` (503 `policy_unavailable`) or `allow`.
             * @enum {string}
             */
            on_failure?: "reject" | "allow";
            /**
             * @description Seconds that a decision counts for calls with the same team, key, end user, model, endpoint, tags and, with `send: body`, body and its type; 0: each call is asked about.
             * @example 0
             */
            cache_seconds?: number;
            /**
             * @description Policies are asked in ascending order, those with the same by name.
             * @example 0
             */
            order?: number;
            /** @description If false, the policy is not asked. */
            enabled?: boolean;
        };
        /**
         * @example {
         *       "model": "gpt-5-mini",
         *       "body": "{\"model\":\"gpt-5-mini\",\"messages\":[]}"
         *     }
         */
        TestedCall: {
            /**
             * @description The key of the call: its ID, or `team/name`; absent: `team_id` and `key_id` are null.
             * @default null
             * @example search/ci
             */
            key?: string | null;
            /**
             * @description Path of the call.
             * @default /v1/chat/completions
             * @example /v1/chat/completions
             */
            endpoint?: string;
            /**
             * @description Model of the call.
             * @default null
             * @example gpt-5-mini
             */
            model?: string | null;
            /**
             * @description End user of the call.
             * @default null
             * @example u-17
             */
            end_user?: string | null;
            /**
             * @description Body of the call, which is sent with `send: body`. It is neither stored nor logged.
             * @default
             * @example {"model":"gpt-5-mini","messages":[]}
             */
            body?: string;
        };
        PolicyTest: {
            /**
             * @description True if the receiver has decided, however it did.
             * @example true
             */
            ok: boolean;
            /**
             * @description The result, for programs.
             * @enum {string}
             */
            code: "ok" | "name_not_resolved" | "refused" | "unreachable" | "timeout" | "tls" | "forbidden_address" | "not_http" | "redirect" | "unexpected_status" | "response_too_large" | "invalid_decision";
            /**
             * @description The result in one sentence, with the remedy.
             * @example OK: the call would be rejected.
             */
            message: string;
            /** @description The decision; null if there is none. */
            decision: {
                /**
                 * @description Whether the call would be forwarded.
                 * @example false
                 */
                allow: boolean;
                /**
                 * @description Why not, for programs; null if it would.
                 * @example pii_found
                 */
                code: string | null;
                /**
                 * @description Why not, in words; null if it would.
                 * @example The request contains a credit card number.
                 */
                message: string | null;
                /**
                 * @description Tags that the row of the call would get; null: none.
                 * @example null
                 */
                tags: {
                    [key: string]: string;
                } | null;
            } | null;
            /**
             * @description Milliseconds that the test took.
             * @example 12.5
             */
            duration_ms: number;
        };
        /**
         * @example {
         *       "document": {
         *         "teams": [
         *           {
         *             "name": "search"
         *           }
         *         ]
         *       },
         *       "dry_run": true
         *     }
         */
        Apply: {
            /** @description The configuration. A named object is changed to match its entry exactly: absent members get their defaults. */
            document: components["schemas"]["ApplyDocument"];
            /**
             * @description Only return the plan.
             * @default false
             */
            dry_run?: boolean;
            /**
             * @description Also end what the given lists do not name: keys are revoked, teams disabled and taken out of their group, the others removed. Keys that members have created for themselves stay.
             * @default false
             */
            prune?: boolean;
            /**
             * @description Return the secrets of new keys and webhooks, which are shown only once. Without it, a document with new ones is rejected.
             * @default false
             */
            return_secrets?: boolean;
            /**
             * @description The plan of a dry run: if it has changed since, nothing is applied. Absent: any plan.
             * @example 6f1ed002ab5595859014ebf0951522d9
             */
            plan_id?: string;
        };
        /**
         * @example {
         *       "name": "dev"
         *     }
         */
        AppliedGroup: {
            /**
             * @description Unique name of the group.
             * @example dev
             */
            name: string;
            /**
             * @description Free text, for people.
             * @default null
             * @example Nightly batch of the ranking model.
             */
            note?: string | null;
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600
             *     }
             */
            limits?: components["schemas"]["NewLimits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "requests_per_minute": 60
             *       }
             *     ]
             */
            filtered_limits?: components["schemas"]["NewFilteredLimits"][] | null;
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewSharedBudget"][] | null;
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20
             *     }
             */
            each_end_user?: components["schemas"]["NewSharedEndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session"
             *         }
             *       ]
             *     }
             */
            each_session?: components["schemas"]["NewSharedSessionLimits"] | null;
        };
        /**
         * @example {
         *       "name": "search"
         *     }
         */
        AppliedTeam: {
            /**
             * @description Unique name of the team.
             * @example search
             */
            name: string;
            /**
             * @description Name or ID of its group; null for none. A team is in at most one group.
             * @default null
             * @example dev
             */
            group?: string | null;
            /**
             * @description Names of the models that may be used, in which `*` stands for any characters; `[]` allows none, null allows all.
             * @example [
             *       "gpt-5*",
             *       "claude-haiku-*"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description Streams of chat completions without `stream_options.include_usage`: `as_sent` forwards them, `require` rejects them, `ask` adds it to the request body.
             * @default as_sent
             * @enum {string}
             */
            stream_usage?: "as_sent" | "require" | "ask";
            /**
             * @description Names of the providers and routes that keys of the team may use; lists of its keys can only narrow it. Null: those of the team, and all that belong to no team.
             * @example [
             *       "openai-search"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description Provider or route that calls to `/v1` of the team go to, unless their key may use only one. Null: the default of all teams.
             * @example openai-search
             */
            default_provider?: string | null;
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600
             *     }
             */
            limits?: components["schemas"]["NewLimits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "requests_per_minute": 60
             *       }
             *     ]
             */
            filtered_limits?: components["schemas"]["NewFilteredLimits"][] | null;
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewBudget"][] | null;
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20
             *     }
             */
            each_end_user?: components["schemas"]["NewEndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session"
             *         }
             *       ]
             *     }
             */
            each_session?: components["schemas"]["NewSessionLimits"] | null;
            /**
             * @description Who owns it, such as a person or a group. `GET /admin/v1/usage?group_by=owner` sums by it. Of a key: null for that of its team. Of a key with `self_service`, the member who created it: it cannot be changed then. Nobody gets a right by it.
             * @default null
             * @example jane@example.com
             */
            owner?: string | null;
            /**
             * @description Whom to ask, such as a person or a channel. Of a key: null for that of its team.
             * @default null
             * @example #search-oncall
             */
            contact?: string | null;
            /**
             * @description Who is charged. `GET /admin/v1/usage?group_by=cost_center` sums by it. Of a key: null for that of its team.
             * @default null
             * @example CC-4711
             */
            cost_center?: string | null;
            /**
             * @description Free text, for people.
             * @default null
             * @example Nightly batch of the ranking model.
             */
            note?: string | null;
            /**
             * @description Lets members of the team (role `team`) create, rotate and revoke keys of their own; null: they can only revoke them.
             * @example {
             *       "keys_per_user": 3,
             *       "max_days": 90,
             *       "budget_usd_per_month": "50",
             *       "providers": [
             *         "openai"
             *       ],
             *       "sign_in_within_days": null
             *     }
             */
            self_service?: components["schemas"]["NewSelfService"] | null;
            /**
             * @description Lets members of the team sign in from a client, such as Claude Code, and says what their keys allow; null: they cannot. Changes apply to the keys that there are.
             * @example {
             *       "budget_usd_per_month": "50",
             *       "providers": [
             *         "anthropic"
             *       ],
             *       "endpoints": "inference",
             *       "token_minutes": 60,
             *       "days": 30
             *     }
             */
            sign_in?: components["schemas"]["NewSignInSettings"] | null;
            /**
             * @description Settings that Claude Code gets from the gateway when a member of the team has signed in; null for none. Only settings that restrict it: others could run commands on the computers of people.
             * @example {
             *       "availableModels": [
             *         "sonnet",
             *         "haiku"
             *       ],
             *       "permissions": {
             *         "deny": [
             *           "WebFetch"
             *         ]
             *       }
             *     }
             */
            claude_code?: components["schemas"]["NewClaudeCodeSettings"] | null;
            /**
             * @description All keys of a disabled team are rejected. Absent: it stays as it is, so that a stop in an emergency is not undone.
             * @example false
             */
            disabled?: boolean;
        };
        AppliedProvider: {
            /**
             * @description Used in `/p/<name>/`.
             * @example openai
             */
            name: string;
            /**
             * @description Base URL without `/v1`, such as `https://api.openai.com`.
             * @example https://api.openai.com
             */
            url: string;
            /**
             * @description How the secret is used: sent in the header of this name, or as a Bearer token; `aws-sigv4`: signs each request; `google`, `oauth2`: requests access tokens; `openai-federation`, `anthropic-federation`: exchanges an identity token of the gateway; `client`: callers send their own credential, which is forwarded, and the gateway key as `x-gateway-key`.
             * @default bearer
             * @enum {string}
             */
            auth?: "bearer" | "x-api-key" | "api-key" | "x-goog-api-key" | "client" | "aws-sigv4" | "google" | "oauth2" | "openai-federation" | "anthropic-federation";
            /**
             * @description The provider's API key; null if it needs none. It may be absent only if `auth` and its settings take none. Never shown again. For `aws-sigv4` the secret access key, or the JSON that `aws configure export-credentials` prints; for `google` the content of the JSON key file; for `oauth2` the client secret.
             * @example sk-…
             */
            secret: (string | null) | components["schemas"]["AsStored"];
            auth_settings?: components["schemas"]["NewProviderAuthSettings"];
            /**
             * @description Calls to `/v1` go to the default provider.
             * @default false
             */
            default?: boolean;
            /**
             * @description Calls to a disabled provider are rejected. Absent: it stays as it is, so that a stop in an emergency is not undone.
             * @example false
             */
            enabled?: boolean;
            /**
             * @description Name of the price list for its models; null if only custom prices for this provider apply. Absent: the one that belongs to the URL's host, if there is one.
             * @example openai
             */
            catalog?: string | null;
            /**
             * @description What happens to a call whose client disconnects before the response is complete. `cancel`: the connection to the provider is closed. `finish`: the response is read to its end, so that its usage is known. Absent: it stays as it is; a new provider gets `finish` if its URL is that of Bedrock, Vertex AI or Gemini, which bill the whole response, otherwise `cancel`.
             * @enum {string}
             */
            on_disconnect?: "cancel" | "finish";
            /**
             * @description The only team whose keys may use it, and routes that send calls to it; null: all teams. A provider with a team is not the default of all teams. Its name or ID.
             * @default null
             * @example search
             */
            team?: string | null;
        };
        /**
         * @example {
         *       "stored": true
         *     }
         */
        AsStored: {
            /**
             * @description It stays as it is stored.
             * @enum {boolean}
             */
            stored: true;
        };
        /**
         * @example {
         *       "team": "search",
         *       "name": "ci"
         *     }
         */
        AppliedKey: {
            /**
             * @description Name or ID of the team.
             * @example search
             */
            team: string;
            /**
             * @description Name of the key, unique within the team.
             * @example ci
             */
            name: string;
            /**
             * @description Of a new key: whether it gets a secret. Without one, only tokens that are issued for the key work: see trusts.
             * @default true
             */
            secret?: boolean;
            /**
             * Format: date-time
             * @description Expiry time; null or absent: the key never expires. A new one must be in the future.
             * @example 2030-01-31T12:00:00.000Z
             */
            expires_at?: string | null;
            /**
             * @description Names of the providers and routes the key may use, of those that its team may use; null allows all of these.
             * @example [
             *       "openai"
             *     ]
             */
            providers?: string[] | null;
            /**
             * @description `inference` allows only the inference endpoints; `own` also allows files, batches and all other endpoints at providers that belong to the team; `all` allows them at every provider, where all its teams share them.
             * @default inference
             * @enum {string}
             */
            endpoints?: "inference" | "own" | "all";
            /**
             * @description `forward` passes `Idempotency-Key` on; `replay` also answers repeated calls from the stored response.
             * @default forward
             * @enum {string}
             */
            idempotency?: "forward" | "replay";
            /**
             * @description Whether the key may open WebSockets on `/v1/realtime` and `/v1/responses`; otherwise they get 426.
             * @default false
             */
            websockets?: boolean;
            /**
             * @description What happens to a call whose client disconnects before the response is complete. `cancel`: the connection to the provider is closed. `finish`: the response is read to its end, so that its usage is known. Null: as the provider of the call says.
             * @default null
             * @example finish
             * @enum {string|null}
             */
            on_disconnect?: "cancel" | "finish" | null;
            /**
             * @description Returns the response of an earlier call with exactly the same request, without calling the provider; null: no cache.
             * @default null
             */
            cache?: components["schemas"]["NewKeyCache"] | null;
            /**
             * @description Names of the models that may be used, in which `*` stands for any characters; `[]` allows none, null allows all.
             * @example [
             *       "gpt-5*",
             *       "claude-haiku-*"
             *     ]
             */
            models?: string[] | null;
            /**
             * @description Streams of chat completions without `stream_options.include_usage`: `as_sent` forwards them, `require` rejects them, `ask` adds it to the request body.
             * @default as_sent
             * @enum {string}
             */
            stream_usage?: "as_sent" | "require" | "ask";
            /**
             * @description Limits of the calls together; null: none. What is absent or null is unlimited.
             * @example {
             *       "requests_per_minute": 600
             *     }
             */
            limits?: components["schemas"]["NewLimits"] | null;
            /**
             * @description Limits of the calls together to some providers or of some models.
             * @example [
             *       {
             *         "providers": [
             *           "openai"
             *         ],
             *         "requests_per_minute": 60
             *       }
             *     ]
             */
            filtered_limits?: components["schemas"]["NewFilteredLimits"][] | null;
            /**
             * @description Budgets of the calls together: at most 4 for the same providers and models.
             * @example [
             *       {
             *         "usd": "500.00",
             *         "period": "month"
             *       }
             *     ]
             */
            budgets?: components["schemas"]["NewBudget"][] | null;
            /**
             * @description Limits of each end user alone; null: none. The end user is what the caller says, so this protects honest callers from each other.
             * @example {
             *       "requests_per_minute": 20
             *     }
             */
            each_end_user?: components["schemas"]["NewEndUserLimits"] | null;
            /**
             * @description Limits of each session alone, which a header of the call names; null: none. Calls that name none are not counted, so limit the key too.
             * @example {
             *       "budgets": [
             *         {
             *           "usd": "5.00",
             *           "period": "session"
             *         }
             *       ]
             *     }
             */
            each_session?: components["schemas"]["NewSessionLimits"] | null;
            /**
             * @description Who owns it, such as a person or a group. `GET /admin/v1/usage?group_by=owner` sums by it. Of a key: null for that of its team. Of a key with `self_service`, the member who created it: it cannot be changed then. Nobody gets a right by it.
             * @default null
             * @example jane@example.com
             */
            owner?: string | null;
            /**
             * @description Whom to ask, such as a person or a channel. Of a key: null for that of its team.
             * @default null
             * @example #search-oncall
             */
            contact?: string | null;
            /**
             * @description Who is charged. `GET /admin/v1/usage?group_by=cost_center` sums by it. Of a key: null for that of its team.
             * @default null
             * @example CC-4711
             */
            cost_center?: string | null;
            /**
             * @description Free text, for people.
             * @default null
             * @example Nightly batch of the ranking model.
             */
            note?: string | null;
            /**
             * @description Calls with a disabled key are rejected. Absent: it stays as it is, so that a stop in an emergency is not undone.
             * @example false
             */
            disabled?: boolean;
        };
        /**
         * @example {
         *       "name": "api-ci",
         *       "key": "search/ci",
         *       "preset": "oidc",
         *       "issuer": "https://login.example.com",
         *       "claims": {
         *         "sub": [
         *           "job"
         *         ]
         *       }
         *     }
         */
        AppliedTrust: {
            /**
             * @description Unique name of the trust, which exchanges name.
             * @example api-ci
             */
            name: string;
            /**
             * @description The key whose tokens are issued: its ID, or `team/name`. Limits of the key apply to them.
             * @example search/ci
             */
            key: string;
            /**
             * @description What the conditions must name, and the issuer if there is only one: `github`, `gitlab`, `kubernetes`, `aws`, `google`, `azure`, or `oidc` for any other.
             * @default oidc
             * @example github
             * @enum {string}
             */
            preset?: "github" | "gitlab" | "kubernetes" | "aws" | "google" | "azure" | "oidc";
            /**
             * @description The `iss` of accepted identity tokens, compared byte for byte. Absent: that of the preset.
             * @default null
             * @example https://token.actions.githubusercontent.com
             */
            issuer?: string | null;
            /**
             * @description The only `aud` of accepted identity tokens. Absent: GATEWAY_URL.
             * @default null
             * @example https://gateway.example.com
             */
            audience?: string | null;
            /**
             * @description Public keys of the issuer, for one that Postern cannot reach; null: they are read from the issuer.
             * @example null
             */
            jwks?: unknown;
            /**
             * @description Accepted values by claim: each claim must have one of its values. A value may end with `*` after `:` or `/`. A name that begins with `/` is a JSON pointer.
             * @example {
             *       "repository_id": [
             *         "821093847"
             *       ],
             *       "ref": [
             *         "refs/heads/main",
             *         "refs/tags/*"
             *       ]
             *     }
             */
            claims: {
                [key: string]: (string | number | boolean)[];
            };
            /**
             * @description Of GitHub and GitLab: whether every branch, tag, environment and workflow may use the trust.
             * @default false
             */
            any_ref?: boolean;
            /**
             * @description Networks that may use the trust; null: all.
             * @example [
             *       "10.0.0.0/8"
             *     ]
             */
            cidrs?: string[] | null;
            /**
             * @description How long a token works, in minutes, from 5 to 60.
             * @default 60
             * @example 60
             */
            token_minutes?: number;
            /**
             * @description Longest lifetime of an accepted identity token, in minutes. Absent: 120; 1440 for GitLab, Kubernetes and Azure.
             * @default null
             * @example 120
             */
            longest_jwt_minutes?: number | null;
            /**
             * @description How many tokens of the trust may work at a time.
             * @default 1000
             * @example 1000
             */
            max_live?: number;
            /**
             * @description None of the tokens of a disabled trust works. Absent: it stays as it is, so that a stop in an emergency is not undone.
             * @example false
             */
            enabled?: boolean;
        };
        StoredWebhook: {
            /**
             * Format: uuid
             * @description ID of the webhook, whose URL stays.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            stored: string;
        };
        /**
         * @example {
         *       "name": "dlp",
         *       "url": {
         *         "stored": true
         *       },
         *       "secret": {
         *         "stored": true
         *       }
         *     }
         */
        AppliedPolicy: {
            /**
             * @description A name for it, also in metrics and rejections.
             * @example dlp
             */
            name: string;
            /**
             * @description Where policies are asked with POST. By the rules for providers: `https` for public addresses, and no link-local or cloud metadata addresses.
             * @example https://filter.example.com/decide
             */
            url: string | components["schemas"]["AsStored"];
            /**
             * @description Signs each request, as Standard Webhooks say: `whsec_` and the base64 of 24 to 64 bytes. Never shown.
             * @example whsec_NFyohv2Kx5m8bLcg0hBzj1NQe7HVYd0m1qgXkz3yD2E=
             */
            secret: string | components["schemas"]["AsStored"];
            /** @description About which calls the policy is asked: those of the teams and of the keys, to the models. Absent or null members limit nothing. */
            applies_to?: components["schemas"]["PolicyScope"];
            /**
             * @description `head`: the policy gets facts of the call; `body`: the request body as well, and WebSockets of its keys are rejected.
             * @default head
             * @enum {string}
             */
            send?: "head" | "body";
            /**
             * @description Milliseconds that a decision may take, from 10 to 30,000.
             * @default 300
             * @example 300
             */
            timeout_ms?: number;
            /**
             * @description What happens to a call if the receiver does not decide: `reject` (503 `policy_unavailable`) or `allow`.
             * @default reject
             * @enum {string}
             */
            on_failure?: "reject" | "allow";
            /**
             * @description Seconds that a decision counts for calls with the same team, key, end user, model, endpoint, tags and, with `send: body`, body and its type; 0: each call is asked about.
             * @default 0
             * @example 0
             */
            cache_seconds?: number;
            /**
             * @description Policies are asked in ascending order, those with the same by name.
             * @default 0
             * @example 0
             */
            order?: number;
            /**
             * @description A disabled policy is not asked. Absent: it stays as it is, so that a stop in an emergency is not undone.
             * @example false
             */
            enabled?: boolean;
        };
        AppliedSink: {
            /**
             * @description A name for it, also in metrics.
             * @example warehouse
             */
            name: string;
            /**
             * @description `clickhouse`: inserts into a table; `jetstream`: messages of a NATS stream; `http`: requests with NDJSON.
             * @enum {string}
             */
            kind: "clickhouse" | "jetstream" | "http";
            /**
             * @description Where rows are sent. `https` or `tls` for public addresses; no link-local or cloud metadata addresses.
             * @example https://clickhouse.example.com:8443
             */
            url: string | components["schemas"]["AsStored"];
            /**
             * @description ClickHouse: `user:password`. JetStream: `user:password`, a token, or the text of a credentials file. HTTP: sent as a bearer token. Never shown.
             * @example postern:…
             */
            secret?: (string | null) | components["schemas"]["AsStored"];
            /**
             * @description Table of ClickHouse, with its database or without; subject of JetStream; null for `http`.
             * @default null
             * @example postern.request_log
             */
            target?: string | null;
            /**
             * Format: date-time
             * @description Of a new sink: only rows recorded at this time or later; absent: all rows of the log.
             * @example 2026-01-31T12:00:00.000Z
             */
            from?: string;
            /**
             * @description Nothing is sent to a disabled sink, and old rows are deleted all the same. Absent: it stays as it is, so that a stop in an emergency is not undone.
             * @example false
             */
            enabled?: boolean;
        };
        /**
         * @example {
         *       "teams": [
         *         {
         *           "name": "search"
         *         }
         *       ]
         *     }
         */
        ApplyDocument: {
            /** @description Limits and budgets of all calls. Absent: they stay as they are. */
            installation?: components["schemas"]["InstallationLimitsChange"];
            /** @description The groups. Absent: none is changed. */
            groups?: components["schemas"]["AppliedGroup"][];
            /** @description The teams. Absent: none is changed. */
            teams?: components["schemas"]["AppliedTeam"][];
            /** @description The providers. Absent: none is changed. */
            providers?: components["schemas"]["AppliedProvider"][];
            /** @description The routes. Absent: none is changed. */
            routes?: components["schemas"]["NewRoute"][];
            /** @description The prices. Absent: none is changed. */
            prices?: components["schemas"]["NewPrice"][];
            /** @description The keys. Absent: none is changed. */
            keys?: components["schemas"]["AppliedKey"][];
            /** @description The trusts. Absent: none is changed. */
            trusts?: components["schemas"]["AppliedTrust"][];
            /** @description The webhooks. Absent: none is changed. */
            webhooks?: {
                /**
                 * @description Where events are sent with POST. By the rules for providers: `https` for public addresses, and no link-local or cloud metadata addresses.
                 * @example https://alerts.example.com/postern
                 */
                url: string | components["schemas"]["StoredWebhook"];
                /**
                 * @description Types of the events that are delivered.
                 * @example [
                 *       "budget.threshold",
                 *       "budget.exhausted"
                 *     ]
                 */
                events: ("budget.threshold" | "budget.exhausted" | "provider.failing" | "provider.recovered" | "key.expiring" | "price.missing" | "journal.degraded" | "sink.lagging" | "refusals.high" | "job.lost" | "cost.unknown" | "trust.failing" | "issuer.unavailable" | "policy.failing")[];
                /**
                 * @description `standard`: JSON, signed as Standard Webhooks say; `slack`: a message for an incoming webhook of Slack, not signed.
                 * @default standard
                 * @enum {string}
                 */
                format?: "standard" | "slack";
            }[];
            /** @description The policies. Absent: none is changed. */
            policies?: components["schemas"]["AppliedPolicy"][];
            /** @description The sinks. Absent: none is changed. */
            sinks?: components["schemas"]["AppliedSink"][];
        };
        Applied: {
            /** @description True if nothing was changed. */
            dry_run: boolean;
            /**
             * @description Identifies the plan.
             * @example 6f1ed002ab5595859014ebf0951522d9
             */
            plan_id: string;
            /** @description The changes, in order. Empty: nothing differs. */
            plan: components["schemas"]["PlannedChange"][];
            /** @description Secrets of new keys and webhooks. */
            secrets: components["schemas"]["NewSecret"][];
        };
        PlannedChange: {
            /**
             * @description `delete`: ended by `prune`. A key is revoked, a team disabled.
             * @enum {string}
             */
            action: "create" | "update" | "delete";
            /**
             * @description Type of the object, as in the audit log.
             * @example team
             */
            type: string;
            /**
             * @description Name of the object; of a key, `team/name`.
             * @example search
             */
            name: string;
            /** @description Of an update: what differs. Values of secrets are not shown. */
            fields: {
                [key: string]: {
                    before: unknown;
                    after: unknown;
                };
            };
        };
        NewSecret: {
            /**
             * @description Type of the new object.
             * @enum {string}
             */
            type: "key" | "webhook";
            /**
             * Format: uuid
             * @description ID of the new object.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Of a key `team/name`, of a webhook its whole URL.
             * @example search/ci
             */
            name: string;
            /**
             * @description Shown only in this response.
             * @example ptn_…
             */
            secret: string;
        };
        SinkPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["Sink"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        Sink: {
            /**
             * Format: uuid
             * @description ID of the sink.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Its name, unique.
             * @example warehouse
             */
            name: string;
            /**
             * @description `clickhouse`: inserts into a table; `jetstream`: messages of a NATS stream; `http`: requests with NDJSON.
             * @enum {string}
             */
            kind: "clickhouse" | "jetstream" | "http";
            /**
             * @description Scheme, host and port of the URL; `/…` if there is more, which may be a credential and is not shown.
             * @example https://clickhouse.example.com:8443
             */
            url: string;
            /**
             * @description Table of ClickHouse, with its database or without; subject of JetStream; null for `http`.
             * @example postern.request_log
             */
            target: string | null;
            /**
             * @description `unreadable`: the URL and the secret were encrypted with another master key, so nothing can be sent.
             * @enum {string}
             */
            secret_state: "sealed" | "unreadable";
            /** @description False: the sink is paused. Then nothing is sent, and old rows are deleted all the same. */
            enabled: boolean;
            /**
             * @description `current`: it has all rows but those of the last seconds; `sending`: older rows are being sent; `failing`: it does not take rows, see `last_error`.
             * @enum {string}
             */
            state: "current" | "sending" | "failing" | "paused";
            /**
             * Format: date-time
             * @description The sink has all rows that were recorded before this time.
             * @example 2026-01-31T12:00:00.000Z
             */
            recorded_until: string;
            /**
             * @description Age of the oldest row that the sink may not have.
             * @example 1.2
             */
            lag_seconds: number;
            /**
             * @description Rows that the sink has taken.
             * @example 12000000
             */
            rows_sent: number;
            /**
             * Format: date-time
             * @description When the sink last took rows; null: never.
             * @example 2026-01-31T12:00:00.000Z
             */
            sent_at: string | null;
            /**
             * Format: date-time
             * @description Since when the sink takes no rows; null: it does.
             * @example 2026-01-31T12:00:00.000Z
             */
            failing_since: string | null;
            /**
             * @description Why it last took no rows, with the remedy; null: that has not happened.
             * @example null
             */
            last_error: string | null;
            /**
             * Format: date-time
             * @description When that was.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_error_at: string | null;
            /**
             * @description Increases with every change.
             * @example 1
             */
            version: number;
            /**
             * Format: date-time
             * @description When the sink was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the sink was last changed.
             * @example 2026-01-31T12:00:00.000Z
             */
            updated_at: string;
        };
        /**
         * @example {
         *       "name": "warehouse",
         *       "kind": "clickhouse",
         *       "url": "https://clickhouse.example.com:8443",
         *       "secret": "postern:…",
         *       "target": "postern.request_log"
         *     }
         */
        NewSink: {
            /**
             * @description A name for it, also in metrics.
             * @example warehouse
             */
            name: string;
            /**
             * @description `clickhouse`: inserts into a table; `jetstream`: messages of a NATS stream; `http`: requests with NDJSON.
             * @enum {string}
             */
            kind: "clickhouse" | "jetstream" | "http";
            /**
             * @description Where rows are sent. `https` or `tls` for public addresses; no link-local or cloud metadata addresses.
             * @example https://clickhouse.example.com:8443
             */
            url: string;
            /**
             * @description ClickHouse: `user:password`. JetStream: `user:password`, a token, or the text of a credentials file. HTTP: sent as a bearer token. Never shown.
             * @default null
             * @example postern:…
             */
            secret?: string | null;
            /**
             * @description Table of ClickHouse, with its database or without; subject of JetStream; null for `http`.
             * @default null
             * @example postern.request_log
             */
            target?: string | null;
            /**
             * Format: date-time
             * @description Only rows recorded at this time or later; absent: all rows of the log.
             * @example 2026-01-31T12:00:00.000Z
             */
            from?: string;
        };
        /**
         * @example {
         *       "enabled": false
         *     }
         */
        SinkChange: {
            /**
             * @description A name for it, also in metrics.
             * @example warehouse
             */
            name?: string;
            /**
             * @description Where rows are sent. `https` or `tls` for public addresses; no link-local or cloud metadata addresses. A URL on another host needs the secret again.
             * @example https://clickhouse.example.com:8443
             */
            url?: string;
            /**
             * @description ClickHouse: `user:password`. JetStream: `user:password`, a token, or the text of a credentials file. HTTP: sent as a bearer token. Never shown.
             * @example postern:…
             */
            secret?: string | null;
            /**
             * @description Table of ClickHouse, with its database or without; subject of JetStream; null for `http`.
             * @example postern.request_log
             */
            target?: string | null;
            /**
             * @description False: the sink is paused. Then nothing is sent, and old rows are deleted all the same.
             * @example false
             */
            enabled?: boolean;
        };
        /**
         * @example {
         *       "from": "2026-01-31T12:00:00.000Z"
         *     }
         */
        SinkReplay: {
            /**
             * Format: date-time
             * @description Rows recorded at this time or later are sent again.
             * @example 2026-01-31T12:00:00.000Z
             */
            from: string;
        };
        AdminTokenPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["AdminToken"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        AdminToken: {
            /**
             * Format: uuid
             * @description ID of the token.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Unique name; the audit log shows it as `token:<name>`.
             * @example prometheus
             */
            name: string;
            /**
             * @description First 12 characters of the token.
             * @example pta_4fGh7Kq2
             */
            prefix: string;
            /**
             * @description `admin`: everything; `viewer`: read everything; `lead`: see its own teams and manage all their keys; `team`: see its own teams; `metrics`: only `GET /metrics`.
             * @enum {string}
             */
            role: "admin" | "viewer" | "lead" | "team" | "metrics";
            /** @description Teams of the roles `lead` and `team`; null for other roles. */
            teams: {
                /**
                 * Format: uuid
                 * @description ID of the team.
                 * @example 01890a5d-ac96-774b-bcce-b302099a8057
                 */
                id: string;
                /**
                 * @description Name of the team.
                 * @example search
                 */
                name: string;
            }[] | null;
            /**
             * Format: date-time
             * @description When the token was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description Expiry time; null if the token never expires.
             * @example 2030-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description Last use, updated with a delay of up to a minute.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
        };
        /**
         * @example {
         *       "name": "prometheus",
         *       "role": "metrics"
         *     }
         */
        NewAdminToken: {
            /**
             * @description Unique name of the token.
             * @example prometheus
             */
            name: string;
            /**
             * @description `admin`: everything; `viewer`: read everything; `lead`: see its own teams and manage all their keys; `team`: see its own teams; `metrics`: only `GET /metrics`.
             * @enum {string}
             */
            role: "admin" | "viewer" | "lead" | "team" | "metrics";
            /**
             * @description Names or IDs of the teams, for the roles `lead` and `team`.
             * @default null
             * @example [
             *       "search"
             *     ]
             */
            teams?: string[] | null;
            /**
             * Format: date-time
             * @description Expiry time, in the future; null or absent: the token never expires.
             * @example 2030-01-31T12:00:00.000Z
             */
            expires_at?: string | null;
        };
        IssuedAdminToken: {
            /**
             * Format: uuid
             * @description ID of the token.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Unique name; the audit log shows it as `token:<name>`.
             * @example prometheus
             */
            name: string;
            /**
             * @description First 12 characters of the token.
             * @example pta_4fGh7Kq2
             */
            prefix: string;
            /**
             * @description `admin`: everything; `viewer`: read everything; `lead`: see its own teams and manage all their keys; `team`: see its own teams; `metrics`: only `GET /metrics`.
             * @enum {string}
             */
            role: "admin" | "viewer" | "lead" | "team" | "metrics";
            /** @description Teams of the roles `lead` and `team`; null for other roles. */
            teams: {
                /**
                 * Format: uuid
                 * @description ID of the team.
                 * @example 01890a5d-ac96-774b-bcce-b302099a8057
                 */
                id: string;
                /**
                 * @description Name of the team.
                 * @example search
                 */
                name: string;
            }[] | null;
            /**
             * Format: date-time
             * @description When the token was created.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description Expiry time; null if the token never expires.
             * @example 2030-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description Last use, updated with a delay of up to a minute.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_used_at: string | null;
            /**
             * @description The token. Shown only in this response: Postern stores its digest.
             * @example pta_…
             */
            token: string;
        };
        AdminSessionPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["AdminSession"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        AdminSession: {
            /**
             * Format: uuid
             * @description ID of the session.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description Name of its user in the audit log.
             * @example sso:jane@example.com
             */
            actor: string;
            /**
             * @description What the user may do.
             * @enum {string}
             */
            role: "admin" | "viewer" | "lead" | "team" | "metrics";
            /** @description Teams that a user of the roles `lead` and `team` may see; null: all. */
            teams: {
                /**
                 * Format: uuid
                 * @description ID of the team.
                 * @example 01890a5d-ac96-774b-bcce-b302099a8057
                 */
                id: string;
                /**
                 * @description Name of the team.
                 * @example search
                 */
                name: string;
            }[] | null;
            /**
             * @description Client address of the sign-in.
             * @example 192.0.2.7
             */
            client_ip: string | null;
            /**
             * Format: date-time
             * @description When the user signed in.
             * @example 2026-01-31T12:00:00.000Z
             */
            created_at: string;
            /**
             * Format: date-time
             * @description Last request, updated with a delay of up to a minute.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_seen_at: string;
            /**
             * Format: date-time
             * @description When the session ends at the latest.
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string;
            /**
             * @description Whether this request was sent with it.
             * @example false
             */
            current: boolean;
        };
        EndedSessions: {
            /**
             * @description How many sessions ended.
             * @example 2
             */
            ended: number;
        };
        DatabaseRegressionPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["DatabaseRegression"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        DatabaseRegression: {
            /**
             * Format: uuid
             * @description ID of the regression.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * @description `put_back`: the processes put back what they have; `waiting`: more is lost than journals keep, as after a restored backup, and an administrator decides; `dismissed`: nothing is put back; `another_database`: nothing of the processes is there.
             * @example put_back
             * @enum {string}
             */
            state: "put_back" | "waiting" | "dismissed" | "another_database";
            /**
             * Format: date-time
             * @description Start of the Postgres server on which it was noticed.
             * @example 2026-01-31T12:00:00.000Z
             */
            server: string;
            /**
             * Format: date-time
             * @description When it was noticed.
             * @example 2026-01-31T12:00:00.000Z
             */
            noticed_at: string;
            /**
             * Format: date-time
             * @description What was written from then on may be lost; null: unknown.
             * @example 2026-01-31T12:00:00.000Z
             */
            lost_from: string | null;
            /**
             * @description How long the lost time is.
             * @example 12
             */
            gap_seconds: number | null;
            /** @description The process runs that lost something. */
            runs: components["schemas"]["DatabaseRegressionRun"][];
            /**
             * @description Rows of the request log that were put back.
             * @example 0
             */
            rows_put_back: number;
            /**
             * @description Rows of days that retention has removed.
             * @example 0
             */
            rows_skipped: number;
            /**
             * @description Idempotency-Keys that were put back.
             * @example 0
             */
            claims_put_back: number;
            /**
             * @description Revocations and other ends of keys, tokens, sessions and people that were put back.
             * @example 0
             */
            ends_put_back: number;
            /** @description Changes that were lost and that nobody applies again: repeat them. */
            lost_entries: components["schemas"]["LostChange"][];
        };
        DatabaseRegressionRun: {
            /**
             * Format: uuid
             * @description ID of the process run: the name of the directory of its journal.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            run: string;
            /**
             * @description The last batch that is in Postgres.
             * @example 4120
             */
            surviving: number;
            /**
             * @description The last batch that Postgres had acknowledged.
             * @example 4187
             */
            acknowledged: number;
        };
        LostChange: {
            /**
             * Format: uuid
             * @description ID of the entry of the audit log.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * Format: date-time
             * @description When the change was made.
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            /**
             * @description Who made it.
             * @example admin-token
             */
            actor: string;
            /**
             * @description What was done.
             * @example rotated
             */
            action: string;
            /**
             * @description With what kind of object.
             * @example key
             */
            subject_type: string;
            /**
             * Format: uuid
             * @description ID of the object.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            subject_id: string;
            /**
             * @description Its name.
             * @example search/ci
             */
            subject_name: string;
        };
        AuditPage: {
            /** @description The entries of this page. */
            data: components["schemas"]["AuditEntry"][];
            /**
             * @description Send as `cursor` to get the next page; null on the last page.
             * @example AaICky58duGSEqvtqqRdvw
             */
            next_cursor: string | null;
        };
        AuditEntry: {
            /**
             * Format: uuid
             * @description ID of the entry; IDs sort by time.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            id: string;
            /**
             * Format: date-time
             * @description When the change was made.
             * @example 2026-01-31T12:00:00.000Z
             */
            at: string;
            /**
             * @description `admin-token`, `token:<name>`, `sso:<user>`, `cli:<user of the operating system>`; `start` for the first team and key; `oidc-logout` and `oidc-check` for what the OpenID provider ends; `oauth-revoke` for whoever ends a token that they have; `failover` for what is put back after Postgres has lost it.
             * @example admin-token
             */
            actor: string;
            /**
             * @description Client address of an admin request; null for commands.
             * @example 192.0.2.7
             */
            client_ip: string | null;
            /**
             * @description What was done.
             * @enum {string}
             */
            action: "applied" | "changed" | "created" | "dismissed" | "ended" | "forgotten" | "put_back" | "removed" | "reopened" | "replayed" | "repriced" | "resealed" | "reset" | "revoked" | "rotated" | "signed_in" | "signed_out";
            /**
             * @description Type of the object.
             * @enum {string}
             */
            subject_type: "configuration" | "device_request" | "group" | "installation_limits" | "issued_token" | "key" | "limit" | "person" | "policy" | "price" | "provider" | "provider_job" | "regression" | "route" | "session" | "sign_in" | "sink" | "team" | "token" | "trust" | "webhook";
            /**
             * Format: uuid
             * @description ID of the object.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            subject_id: string;
            /**
             * @description Name of the object at that time; of a key, `team/name`.
             * @example search
             */
            subject_name: string;
            /**
             * @description Previous values of what changed; all values of a removed object; null for a new one.
             * @example {
             *       "disabled": false
             *     }
             */
            before: {
                [key: string]: unknown;
            } | null;
            /**
             * @description New values of what changed; all values of a new object; null for a removed one.
             * @example {
             *       "disabled": true
             *     }
             */
            after: {
                [key: string]: unknown;
            } | null;
        };
        GatewayError: {
            /** @description The error. */
            error: {
                /**
                 * @description What is wrong.
                 * @example The gateway key is missing.
                 */
                message: string;
                /**
                 * @description Kind of error.
                 * @example authentication_error
                 */
                type: string;
                /**
                 * @description Always null.
                 * @enum {string|null}
                 */
                param: null;
                /**
                 * @description Error code for programs.
                 * @example invalid_api_key
                 */
                code: string;
            };
        };
        OwnKey: {
            /**
             * @description Name of the key, unique within its team.
             * @example ci
             */
            name: string;
            /**
             * @description First characters of the secret that was sent.
             * @example ptn_4fGh7Kq2
             */
            prefix: string;
            /**
             * @description Name of the team.
             * @example search
             */
            team: string;
            /**
             * @description Other keys get 401.
             * @enum {string}
             */
            status: "active";
            /**
             * Format: date-time
             * @description When the key expires; null if it never does.
             * @example 2026-01-31T12:00:00.000Z
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description When the secret that was sent stops working, because the key was rotated; null if it was not.
             * @example 2026-01-31T12:00:00.000Z
             */
            secret_expires_at: string | null;
            /**
             * @description Endpoints that the key may use.
             * @enum {string}
             */
            endpoints: "inference" | "own" | "all";
            /**
             * @description Providers and routes that the key may use; null: all that belong to no other team.
             * @example [
             *       "openai"
             *     ]
             */
            providers: string[] | null;
            /**
             * @description What happens to `Idempotency-Key`.
             * @enum {string}
             */
            idempotency: "forward" | "replay";
            /**
             * @description Models that the key may use; null: all.
             * @example [
             *       "gpt-5*"
             *     ]
             */
            models: string[] | null;
            /**
             * @description Models that the team may use; null: all. A model must be on both lists.
             * @example [
             *       "gpt-5*"
             *     ]
             */
            team_models: string[] | null;
            /** @description Limits and budgets that apply to calls with this key, those of its team included. Those of each end user of the key are shown for the end user in `x-gateway-user`. */
            limits: components["schemas"]["OwnLimit"][];
            /** @description Limits and budgets that calls with this key share with others: those of the group of its team, and of all calls. Without amounts. */
            shared_limits: components["schemas"]["SharedLimit"][];
        };
        OwnLimit: {
            /**
             * @description Whose it is; `…_end_user`, `…_session`: each end user or session of its calls has the amount for itself.
             * @example team
             * @enum {string}
             */
            scope: "installation" | "installation_end_user" | "installation_session" | "group" | "group_end_user" | "group_session" | "team" | "team_end_user" | "team_session" | "key" | "key_end_user" | "key_session";
            /**
             * @description What is limited.
             * @enum {string}
             */
            resource: "requests" | "tokens" | "concurrent_requests" | "usd";
            /**
             * @description `minute`: any 60 seconds; `at_once`: at the same time; else the period of a budget.
             * @enum {string}
             */
            period: "minute" | "at_once" | "day" | "week" | "month" | "total" | "session";
            /**
             * @description `block` rejects calls; `warn` only counts.
             * @enum {string}
             */
            mode: "block" | "warn";
            /**
             * @description What a budget in USD does with calls without a price: `reject`; `allow`: they pass, and `used` leaves them out. Null for what is not in USD.
             * @example reject
             * @enum {string|null}
             */
            unpriced: "reject" | "allow" | null;
            /**
             * @description The limit. As a decimal, in USD for `usd`.
             * @example 500.00
             */
            amount: string;
            /**
             * @description What resets have added in this period. As a decimal, in USD for `usd`.
             * @example 0.00
             */
            credited: string;
            /**
             * @description The charges of calls in the request log, or what was used in the last minute or is in use. As a decimal, in USD for `usd`.
             * @example 123.45
             */
            used: string;
            /**
             * @description Reserved by gateways for calls. As a decimal, in USD for `usd`.
             * @example 1.20
             */
            held: string;
            /**
             * @description What is neither used nor held; not below 0. As a decimal, in USD for `usd`.
             * @example 375.35
             */
            left: string;
            /**
             * Format: date-time
             * @description When it last rejected a call in this period; null if it rejected none, or was reset since.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_rejected_at: string | null;
            /**
             * @description What that call would have used. As a decimal, in USD for `usd`. Null if it is not known.
             * @example 0.00207
             */
            last_needed: string | null;
            /**
             * @description `blocking`: it rejects calls: too little is left for the last one that it rejected, and it has admitted none since; `exhausted`: nothing is left; `warned`: used up to one of its `alert_at` percentages.
             * @enum {string}
             */
            state: "ok" | "warned" | "exhausted" | "blocking";
            /**
             * Format: date-time
             * @description When the budget resets; null if it never does, and for other limits.
             * @example 2026-01-31T12:00:00.000Z
             */
            resets_at: string | null;
        };
        SharedLimit: {
            /**
             * @description Whose it is; `…_end_user`, `…_session`: each end user or session of its calls has the amount for itself.
             * @example team
             * @enum {string}
             */
            scope: "installation" | "installation_end_user" | "installation_session" | "group" | "group_end_user" | "group_session" | "team" | "team_end_user" | "team_session" | "key" | "key_end_user" | "key_session";
            /**
             * @description What is limited.
             * @enum {string}
             */
            resource: "requests" | "tokens" | "concurrent_requests" | "usd";
            /**
             * @description `minute`: any 60 seconds; `at_once`: at the same time; else the period of a budget.
             * @enum {string}
             */
            period: "minute" | "at_once" | "day" | "week" | "month" | "total" | "session";
            /**
             * @description Only calls to these providers count; null: all.
             * @example [
             *       "openai"
             *     ]
             */
            providers: string[] | null;
            /**
             * @description Only calls of these models count; null: all.
             * @example [
             *       "claude-opus-*"
             *     ]
             */
            models: string[] | null;
            /**
             * Format: date-time
             * @description When the budget resets; null if it never does, and for other limits.
             * @example 2026-01-31T12:00:00.000Z
             */
            resets_at: string | null;
            /**
             * @description Whether it rejects calls now.
             * @example false
             */
            blocking: boolean;
        };
        OwnUsage: {
            /**
             * @description Where days and months begin: `REPORT_TIMEZONE`.
             * @example UTC
             */
            time_zone: string;
            /**
             * Format: date-time
             * @description Calls recorded until then are counted.
             * @example 2026-01-31T12:00:00.000Z
             */
            as_of: string;
            /** @description Sums of the present day. */
            today: components["schemas"]["OwnUsageSums"];
            /** @description Sums of the present month. */
            this_month: components["schemas"]["OwnUsageSums"];
            /** @description Days with calls from `from` to `to`, newest first. */
            days: components["schemas"]["OwnUsageDay"][];
        };
        OwnUsageSums: {
            /**
             * @description Number of calls.
             * @example 14
             */
            calls: number;
            /**
             * @description Calls that failed; a client that disconnected is no error.
             * @example 1
             */
            errors: number;
            /**
             * @description Calls that may have used tokens although the provider reported none, such as streams without `include_usage`: they are missing from the sums of tokens. Counts POST calls with a status below 400 or none, except replayed and cached ones.
             * @example 2
             */
            calls_without_tokens: number;
            /**
             * @description Sum: All input tokens, including those read from and written to the provider's cache.
             * @example 1024
             */
            prompt_tokens: number;
            /**
             * @description Sum: All output tokens, including reasoning.
             * @example 1024
             */
            completion_tokens: number;
            /**
             * @description Sum of `prompt_tokens` and `completion_tokens`.
             * @example 2048
             */
            total_tokens: number;
            /**
             * @description Calls with tokens or other units and without a cost, for example because their model has no price. Without `unknown_calls`.
             * @example 1
             */
            unpriced_calls: number;
            /**
             * @description Exact sum of the costs in USD; null if no call has one.
             * @example 12.345678900
             */
            cost_usd: string | null;
            /**
             * @description Calls whose cost is not known, because the provider may have billed what was not read, such as the rest of a stream that broke off. They are not in `cost_usd`.
             * @example 3
             */
            unknown_calls: number;
            /**
             * @description Exact sum in USD of what these calls cost at least, never a part of `cost_usd`; null if it is known of none.
             * @example 0.200000000
             */
            unknown_low_usd: string | null;
            /**
             * @description Exact sum in USD of what these calls cost at most, without `unbounded_calls`, never a part of `cost_usd`; null if it is known of none.
             * @example 1.940000000
             */
            unknown_high_usd: string | null;
            /**
             * @description Calls among `unknown_calls` of which it is not known what they cost at most.
             * @example 0
             */
            unbounded_calls: number;
            /**
             * @description Exact sum in USD of what calls from the response cache would have cost; null if it is known of no call.
             * @example 1.234567800
             */
            saved_usd: string | null;
        };
        OwnUsageDay: {
            /**
             * @description Number of calls.
             * @example 14
             */
            calls: number;
            /**
             * @description Calls that failed; a client that disconnected is no error.
             * @example 1
             */
            errors: number;
            /**
             * @description Calls that may have used tokens although the provider reported none, such as streams without `include_usage`: they are missing from the sums of tokens. Counts POST calls with a status below 400 or none, except replayed and cached ones.
             * @example 2
             */
            calls_without_tokens: number;
            /**
             * @description Sum: All input tokens, including those read from and written to the provider's cache.
             * @example 1024
             */
            prompt_tokens: number;
            /**
             * @description Sum: All output tokens, including reasoning.
             * @example 1024
             */
            completion_tokens: number;
            /**
             * @description Sum of `prompt_tokens` and `completion_tokens`.
             * @example 2048
             */
            total_tokens: number;
            /**
             * @description Calls with tokens or other units and without a cost, for example because their model has no price. Without `unknown_calls`.
             * @example 1
             */
            unpriced_calls: number;
            /**
             * @description Exact sum of the costs in USD; null if no call has one.
             * @example 12.345678900
             */
            cost_usd: string | null;
            /**
             * @description Calls whose cost is not known, because the provider may have billed what was not read, such as the rest of a stream that broke off. They are not in `cost_usd`.
             * @example 3
             */
            unknown_calls: number;
            /**
             * @description Exact sum in USD of what these calls cost at least, never a part of `cost_usd`; null if it is known of none.
             * @example 0.200000000
             */
            unknown_low_usd: string | null;
            /**
             * @description Exact sum in USD of what these calls cost at most, without `unbounded_calls`, never a part of `cost_usd`; null if it is known of none.
             * @example 1.940000000
             */
            unknown_high_usd: string | null;
            /**
             * @description Calls among `unknown_calls` of which it is not known what they cost at most.
             * @example 0
             */
            unbounded_calls: number;
            /**
             * @description Exact sum in USD of what calls from the response cache would have cost; null if it is known of no call.
             * @example 1.234567800
             */
            saved_usd: string | null;
            /**
             * @description Day.
             * @example 2026-01-31
             */
            day: string;
        };
        OwnRefusals: {
            /** @description The most frequent reasons, at most 100. */
            data: components["schemas"]["OwnRefusal"][];
            /**
             * @description Rejected requests of all groups, also of those that are not shown.
             * @example 1204
             */
            calls: number;
        };
        OwnRefusal: {
            /**
             * @description Why: `x-gateway-error`.
             * @example insufficient_quota
             */
            code: string;
            /**
             * @description The limit or budget that rejected them, by whose it is; null: none, or it was removed.
             * @example search/ci usd/month
             */
            limit: string | null;
            /**
             * @description Where the call would have gone; null if that was not known yet.
             * @example openai
             */
            provider: string | null;
            /**
             * @description Its model, for reasons that depend on it; at most 200 characters.
             * @example gpt-5
             */
            model: string | null;
            /**
             * @description Rejected requests.
             * @example 1204
             */
            calls: number;
            /**
             * Format: date-time
             * @description When the last of them was rejected.
             * @example 2026-01-31T12:00:00.000Z
             */
            last_at: string;
            /**
             * Format: uuid
             * @description ID of the last of them: its `x-gateway-request-id`.
             * @example 01890a5d-ac96-774b-bcce-b302099a8057
             */
            last_request_id: string;
        };
        System: {
            /**
             * @description Of this gateway.
             * @example 0.1.0
             */
            version: string;
            /**
             * @description Commit of the clone that the gateway runs in; null if it is no clone.
             * @example null
             */
            commit: string | null;
            /**
             * @description Version of Node.js.
             * @example v20.20.2
             */
            node: string;
            /**
             * Format: date-time
             * @description When this process started.
             * @example 2026-01-31T12:00:00.000Z
             */
            started_at: string;
            /**
             * @description As `GET /health/ready` says.
             * @enum {string}
             */
            status: "ok" | "degraded" | "unavailable";
            /**
             * @description What does not work.
             * @example []
             */
            reasons: string[];
            /** @description The journal of this process. */
            journal: {
                /** @description False: new calls get 503. */
                accepting: boolean;
                /**
                 * @description Why it does not keep all its guarantees now; null if it does.
                 * @example null
                 */
                degraded: string | null;
                /**
                 * @description Size of the files of this process.
                 * @example 65536
                 */
                bytes: number;
                /**
                 * @description Age of the oldest file that is still needed; 0 without one.
                 * @example 0
                 */
                oldest_seconds: number;
            };
            /** @description What this process writes to Postgres. */
            log_writer: {
                /**
                 * @description Rows that this process wrote to Postgres.
                 * @example 12000
                 */
                persisted: number;
                /**
                 * @description Rows that are in memory and not in Postgres yet.
                 * @example 3
                 */
                waiting: number;
                /**
                 * @description Rows that are only in the journal.
                 * @example 0
                 */
                spilled: number;
                /**
                 * @description Rows that Postgres rejected; each is stored in a file.
                 * @example 0
                 */
                rejected: number;
                /**
                 * @description For how long writing has failed, all the time or again and again; 0 while it succeeds.
                 * @example 0
                 */
                failing_seconds: number;
            };
            /**
             * Format: date-time
             * @description Calls recorded until then are in the sums of usage.
             * @example 2026-01-31T12:00:00.000Z
             */
            usage_as_of: string | null;
            /** @description The database of the gateway. */
            database: {
                /**
                 * @description Version of Postgres.
                 * @example 16.4
                 */
                version: string;
                /**
                 * @description Size of the database.
                 * @example 104857600
                 */
                bytes: number;
            };
            /** @description Gateway processes that are connected to this database. */
            processes: {
                /**
                 * @description As Postgres sees it; null for a local socket.
                 * @example 192.0.2.7
                 */
                address: string | null;
                /**
                 * Format: date-time
                 * @description When it connected to Postgres.
                 * @example 2026-01-31T12:00:00.000Z
                 */
                connected_at: string;
            }[];
            /** @description Days of the request log, newest first. */
            partitions: {
                /**
                 * @description Name of the table.
                 * @example request_log_20260131
                 */
                name: string;
                /**
                 * @description Size with its indexes.
                 * @example 1048576
                 */
                bytes: number;
                /**
                 * @description Rows, as Postgres estimates; null before its first estimate.
                 * @example 52000
                 */
                rows: number | null;
            }[];
            /** @description Modules besides those of the gateway. */
            modules: {
                /**
                 * @description As MODULES or the module itself says.
                 * @example @acme/postern-quotas
                 */
                name: string;
                /**
                 * @description Null if neither it nor its package says.
                 * @example 1.2.0
                 */
                version: string | null;
                /**
                 * @description Whether MODULES names it, or the application imports it.
                 * @enum {string}
                 */
                loaded_by: "MODULES" | "import";
            }[];
            /** @description Settings of this process. */
            settings: {
                /**
                 * @description Environment variable.
                 * @example LOG_LEVEL
                 */
                name: string;
                /** @description Whether its value is not the default; of a secret, whether it is set or generated. */
                changed: boolean;
                /** @description Whether its value is not shown: secrets, URLs that may contain one, settings of modules. */
                hidden: boolean;
                /**
                 * @description Null if it is hidden or not set.
                 * @example info
                 */
                value: string | null;
            }[];
        };
        Attention: {
            /** @description The most urgent first; empty if all is well. */
            data: components["schemas"]["AttentionItem"][];
        };
        AttentionItem: {
            /**
             * @description `provider_missing`: there is no provider yet, or all are disabled: calls get 503; it has no names; `provider_failing`: providers that fail most of their calls now, by the rule of the alert `provider.failing`; `budget_blocking`: budgets that are exhausted, or have rejected calls in this period; `system_degraded`: what `GET /health/ready` reports as not working; `transactions_lost`: times when Postgres lost what it had acknowledged, that wait for a decision, or in the last 7 days with changes that nobody applies again; `secret_unreadable`: providers, policies, webhooks and sinks whose secret was encrypted with another master key; `sink_failing`: sinks that do not take rows; `webhook_failing`: webhooks whose receiver does not take events; `key_expiring`: active keys that expire within 7 days; `key_old_secret`: rotated keys whose old secret was used in the last day and still works; `price_missing`: models called in the last 7 days that have no price; `key_unused`: active keys that nobody has used for 90 days.
             * @enum {string}
             */
            kind: "provider_missing" | "provider_failing" | "budget_blocking" | "system_degraded" | "transactions_lost" | "secret_unreadable" | "sink_failing" | "webhook_failing" | "key_expiring" | "key_old_secret" | "price_missing" | "key_unused";
            /**
             * @description `critical`: calls fail or rows are at risk; `warning`: they will; `info`: worth a look.
             * @enum {string}
             */
            level: "critical" | "warning" | "info";
            /**
             * @description How many there are; at least 1.
             * @example 2
             */
            count: number;
            /** @description The first 5 of them, of `provider_failing` all; empty for what has no name. */
            names: {
                /**
                 * @description ID of the key, limit, sink or webhook; null for what a name identifies.
                 * @example 01890a5d-ac96-774b-bcce-b302099a8057
                 */
                id: string | null;
                /**
                 * @description Its name; of a key `team/key`.
                 * @example search/ci
                 */
                name: string;
                /**
                 * Format: date-time
                 * @description When it began, of a provider that fails; else null.
                 * @example 2026-01-31T12:00:00.000Z
                 */
                since: string | null;
                /**
                 * @description More about it; null if there is no more.
                 * @example 25 of 25 calls failed in the last minutes, mostly insufficient_quota
                 */
                detail: string | null;
            }[];
        };
        Liveness: {
            /**
             * @description Always `ok`.
             * @example ok
             * @enum {string}
             */
            status: "ok";
        };
        Readiness: {
            /**
             * @description `degraded`: calls are served, but not everything works.
             * @example degraded
             * @enum {string}
             */
            status: "ok" | "degraded" | "unavailable";
            /**
             * @description What does not work, for operators.
             * @example [
             *       "Postgres is unavailable; cached keys still work"
             *     ]
             */
            reasons: string[];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
/** The endpoints of the admin API, by the names of their operations. */
export interface operations {
    getSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session, or null, and the time zone. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionState"];
                };
            };
        };
    };
    signIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SignIn"];
            };
        };
        responses: {
            /** @description Signed in. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    signOut: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Signed out. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    getSingleSignOn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether there is single sign-on. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SingleSignOn"];
                };
            };
        };
    };
    startSingleSignOn: {
        parameters: {
            query: {
                /** @description Page of the console to go to after signing in. */
                return_to: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To the provider. */
            302: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    finishSingleSignOn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Signed in. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    listTeams: {
        parameters: {
            query?: {
                /** @description Only teams in whose name each of these words occurs, in any case. For example `sea`. */
                search?: string;
                /** @description Only teams of this group, by name or ID. For example `dev`. */
                group?: string;
                /** @description Only teams with this owner. For example `jane@example.com`. */
                owner?: string;
                /** @description Only teams with this contact. For example `#search-oncall`. */
                contact?: string;
                /** @description Only teams with this cost center. For example `CC-4711`. */
                cost_center?: string;
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of teams. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TeamPage"];
                };
            };
        };
    };
    createTeam: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTeam"];
            };
        };
        responses: {
            /** @description The new team. */
            201: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Team"];
                };
            };
        };
    };
    getTeam: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name or ID of the team. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The team. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Team"];
                };
            };
        };
    };
    changeTeam: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description Name or ID of the team. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TeamChange"];
            };
        };
        responses: {
            /** @description The changed team. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Team"];
                };
            };
        };
    };
    listGroups: {
        parameters: {
            query?: {
                /** @description Only groups in whose name each of these words occurs, in any case. For example `dev`. */
                search?: string;
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of groups. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupPage"];
                };
            };
        };
    };
    createGroup: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewGroup"];
            };
        };
        responses: {
            /** @description The new group. */
            201: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Group"];
                };
            };
        };
    };
    getGroup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name or ID of the group. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The group. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Group"];
                };
            };
        };
    };
    removeGroup: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description Name or ID of the group. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeGroup: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description Name or ID of the group. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GroupChange"];
            };
        };
        responses: {
            /** @description The changed group. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Group"];
                };
            };
        };
    };
    listKeys: {
        parameters: {
            query?: {
                /** @description Only keys of this team, by name or ID. For example `search`. */
                team?: string;
                /** @description Only keys with this name; each team may have one. For example `ci`. */
                name?: string;
                /** @description Only keys with a secret that starts with these characters, at most 12. Never send a whole key. For example `ptn_4fGh7Kq2`. */
                prefix?: string;
                /** @description Only keys with this status. */
                status?: "active" | "disabled" | "expired" | "revoked";
                /** @description Only keys in whose name, team, owner or contact each of these words occurs, in any case; or the first characters of a key. Never send a whole key. For example `search/no`. */
                search?: string;
                /** @description Only these keys, by ID, at most 100, separated by commas. For example `01890a5d-ac96-774b-bcce-b302099a8057`. */
                id?: string;
                /** @description Only keys that expire before this time, or have expired. For example `2030-01-31T12:00:00.000Z`. */
                expires_before?: string;
                /** @description Only keys that were last used before this time, or created before and never used. For example `2026-01-31T12:00:00.000Z`. */
                unused_since?: string;
                /** @description What to sort by. Default: `created`. `name` is that of the team, then of the key; `expires`: keys without an expiry come after those with one, expired and revoked keys last; `last_used`: keys that were never used come first. */
                sort?: "created" | "name" | "expires" | "last_used";
                /** @description Ascending or descending. Default: `desc` for `created`, else `asc`. */
                order?: "asc" | "desc";
                /** @description Only keys with this owner, of their own or of their team. For example `jane@example.com`. */
                owner?: string;
                /** @description Only keys with this contact, of their own or of their team. For example `#search-oncall`. */
                contact?: string;
                /** @description Only keys with this cost center, of their own or of their team. For example `CC-4711`. */
                cost_center?: string;
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of keys. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyPage"];
                };
            };
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewKey"];
            };
        };
        responses: {
            /** @description The new key. */
            201: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IssuedKey"];
                };
            };
        };
    };
    getKeyAllowance: {
        parameters: {
            query: {
                /** @description Name or ID of the team. */
                team: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What a new key of yours would have. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyAllowance"];
                };
            };
        };
    };
    countKeys: {
        parameters: {
            query?: {
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of teams that have keys. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyCountsPage"];
                };
            };
        };
    };
    getKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the key. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Key"];
                };
            };
        };
    };
    changeKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description ID of the key. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["KeyChange"];
            };
        };
        responses: {
            /** @description The changed key. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Key"];
                };
            };
        };
    };
    rotateKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description ID of the key. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Rotation"];
            };
        };
        responses: {
            /** @description The key with its new secret. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RotatedKey"];
                };
            };
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description ID of the key. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Revocation"];
            };
        };
        responses: {
            /** @description The revoked key. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Key"];
                };
            };
        };
    };
    findKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LeakedSecret"];
            };
        };
        responses: {
            /** @description The key. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LeakedKey"];
                };
            };
        };
    };
    listTrusts: {
        parameters: {
            query?: {
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of trusts. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrustPage"];
                };
            };
        };
    };
    createTrust: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTrust"];
            };
        };
        responses: {
            /** @description The new trust. */
            201: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Trust"];
                };
            };
        };
    };
    getTrust: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name or ID of the trust. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The trust. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Trust"];
                };
            };
        };
    };
    removeTrust: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description Name or ID of the trust. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeTrust: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description Name or ID of the trust. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TrustChange"];
            };
        };
        responses: {
            /** @description The changed trust. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Trust"];
                };
            };
        };
    };
    listTrustFailures: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name or ID of the trust. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The failures. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrustFailures"];
                };
            };
        };
    };
    testTrust: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name or ID of the trust. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TestedToken"];
            };
        };
        responses: {
            /** @description The verdict. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenVerdict"];
                };
            };
        };
    };
    listKeyTokens: {
        parameters: {
            query?: {
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description ID of the key. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of tokens. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IssuedTokenPage"];
                };
            };
        };
    };
    listPeople: {
        parameters: {
            query?: {
                /** @description Only people whose name or e-mail address has these words. For example `jane`. */
                search?: string;
                /** @description `ended`: only people who were ended; `active`: only others. */
                state?: "active" | "ended";
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of people. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PersonPage"];
                };
            };
        };
    };
    getPerson: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID or e-mail address of the person. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The person. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShownPerson"];
                };
            };
        };
    };
    endPerson: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID or e-mail address of the person. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Nothing"];
            };
        };
        responses: {
            /** @description The person, and what ended. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EndedPerson"];
                };
            };
        };
    };
    reopenPerson: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID or e-mail address of the person. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Nothing"];
            };
        };
        responses: {
            /** @description The person. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Person"];
                };
            };
        };
    };
    forgetPerson: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID or e-mail address of the person. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Nothing"];
            };
        };
        responses: {
            /** @description The person. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Person"];
                };
            };
        };
    };
    listSignIns: {
        parameters: {
            query?: {
                /** @description `active`: only sign-ins that go on; `ended`: only others. */
                state?: "active" | "ended";
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of sign-ins. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignInPage"];
                };
            };
        };
    };
    getClientSetup: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Address and certificate. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClientSetup"];
                };
            };
        };
    };
    endSignIn: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the sign-in. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ended. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listProviders: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All providers. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderPage"];
                };
            };
        };
    };
    createProvider: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewProvider"];
            };
        };
        responses: {
            /** @description The new provider. */
            201: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Provider"];
                };
            };
        };
    };
    getProvider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the provider. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The provider. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Provider"];
                };
            };
        };
    };
    removeProvider: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description Name of the provider. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeProvider: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description Name of the provider. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProviderChange"];
            };
        };
        responses: {
            /** @description The changed provider. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Provider"];
                };
            };
        };
    };
    testProvider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the provider. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Nothing"];
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Probe"];
                };
            };
        };
    };
    listRoutes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All routes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RoutePage"];
                };
            };
        };
    };
    createRoute: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewRoute"];
            };
        };
        responses: {
            /** @description The new route. */
            201: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Route"];
                };
            };
        };
    };
    getRoute: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the route. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The route. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Route"];
                };
            };
        };
    };
    removeRoute: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description Name of the route. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeRoute: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description Name of the route. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RouteChange"];
            };
        };
        responses: {
            /** @description The changed route. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Route"];
                };
            };
        };
    };
    listRecordedRequests: {
        parameters: {
            query?: {
                /** @description Only calls of the teams that are now in this group, by name or ID. For example `dev`. */
                group?: string;
                /** @description Only calls of this team, by name or ID. For example `search`. */
                team?: string;
                /** @description Only calls with this key, by its ID or its first 12 characters. Never send a whole key. For example `ptn_4fGh7Kq2`. */
                key?: string;
                /** @description Only calls with the keys that now have this owner, of their own or of their team. For example `jane@example.com`. */
                owner?: string;
                /** @description Only calls with the keys that now have this cost center, of their own or of their team. For example `CC-4711`. */
                cost_center?: string;
                /** @description Only calls to this provider. For example `openai`. */
                provider?: string;
                /** @description Only calls for this model. For example `gpt-4o-mini`. */
                model?: string;
                /** @description Only calls with one of these HTTP statuses, such as `429`, or classes, such as `5xx`, separated by commas. For example `429,5xx`. */
                status?: string;
                /** @description Only calls with this outcome. */
                outcome?: "completed" | "client_aborted" | "client_error" | "upstream_error" | "upstream_timeout" | "truncated" | "interrupted" | "replayed" | "cached" | "retried";
                /** @description Only failed calls: with a status of 400 or above, or that the provider or the gateway did not complete; `false`: only others. */
                failed?: "true" | "false";
                /** @description `false`: only calls whose usage was not read to the end, so that their cost is not known; `true`: only calls whose usage was. */
                usage_final?: "true" | "false";
                /** @description Only calls whose provider reported an error of this type or code. For example `insufficient_quota`. */
                provider_error?: string;
                /** @description Only calls that took this long or longer. For example `5000`. */
                min_duration_ms?: number;
                /** @description Only calls of this end user, as the request log stores it. For example `user-7`. */
                end_user?: string;
                /** @description Only calls of this session. For example `session-12`. */
                session?: string;
                /** @description Only calls with tokens that were issued to this subject, as the request log stores it. For example `repo:acme/api:ref:refs/heads/main`. */
                subject?: string;
                /** @description Only calls with this tag of `x-gateway-tags`, or with all of several, separated by commas. For example `env=prod`. */
                tag?: string;
                /** @description Only calls whose response the provider gave this ID. Give `from`, too: the log has no index for it. For example `req_011CQ3b8`. */
                provider_request_id?: string;
                /** @description Only rows written to the database after this time; absent: no rows, only `recorded_until`. For example `2026-01-31T12:00:00.000Z`. */
                recorded_after?: string;
                /** @description Also rows written at exactly `recorded_after` that have a greater ID than this one. For example `01890a5d-ac96-774b-bcce-b302099a8057`. */
                after_id?: string;
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The calls, oldest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecordedRequests"];
                };
            };
        };
    };
    listRequests: {
        parameters: {
            query?: {
                /** @description Only calls of the teams that are now in this group, by name or ID. For example `dev`. */
                group?: string;
                /** @description Only calls of this team, by name or ID. For example `search`. */
                team?: string;
                /** @description Only calls with this key, by its ID or its first 12 characters. Never send a whole key. For example `ptn_4fGh7Kq2`. */
                key?: string;
                /** @description Only calls with the keys that now have this owner, of their own or of their team. For example `jane@example.com`. */
                owner?: string;
                /** @description Only calls with the keys that now have this cost center, of their own or of their team. For example `CC-4711`. */
                cost_center?: string;
                /** @description Only calls to this provider. For example `openai`. */
                provider?: string;
                /** @description Only calls for this model. For example `gpt-4o-mini`. */
                model?: string;
                /** @description Only calls with one of these HTTP statuses, such as `429`, or classes, such as `5xx`, separated by commas. For example `429,5xx`. */
                status?: string;
                /** @description Only calls with this outcome. */
                outcome?: "completed" | "client_aborted" | "client_error" | "upstream_error" | "upstream_timeout" | "truncated" | "interrupted" | "replayed" | "cached" | "retried";
                /** @description Only failed calls: with a status of 400 or above, or that the provider or the gateway did not complete; `false`: only others. */
                failed?: "true" | "false";
                /** @description `false`: only calls whose usage was not read to the end, so that their cost is not known; `true`: only calls whose usage was. */
                usage_final?: "true" | "false";
                /** @description Only calls whose provider reported an error of this type or code. For example `insufficient_quota`. */
                provider_error?: string;
                /** @description Only calls that took this long or longer. For example `5000`. */
                min_duration_ms?: number;
                /** @description Only calls of this end user, as the request log stores it. For example `user-7`. */
                end_user?: string;
                /** @description Only calls of this session. For example `session-12`. */
                session?: string;
                /** @description Only calls with tokens that were issued to this subject, as the request log stores it. For example `repo:acme/api:ref:refs/heads/main`. */
                subject?: string;
                /** @description Only calls with this tag of `x-gateway-tags`, or with all of several, separated by commas. For example `env=prod`. */
                tag?: string;
                /** @description Only calls whose response the provider gave this ID. Give `from`, too: the log has no index for it. For example `req_011CQ3b8`. */
                provider_request_id?: string;
                /** @description Only calls that started at this time or later. For example `2026-01-31T12:00:00.000Z`. */
                from?: string;
                /** @description Only calls that started before this time. For example `2026-01-31T12:00:00.000Z`. */
                to?: string;
                /** @description Only rows written to the database after this time; for incremental export. For example `2026-01-31T12:00:00.000Z`. */
                recorded_after?: string;
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of calls. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestPage"];
                };
            };
        };
    };
    exportRequests: {
        parameters: {
            query?: {
                /** @description Only calls of the teams that are now in this group, by name or ID. For example `dev`. */
                group?: string;
                /** @description Only calls of this team, by name or ID. For example `search`. */
                team?: string;
                /** @description Only calls with this key, by its ID or its first 12 characters. Never send a whole key. For example `ptn_4fGh7Kq2`. */
                key?: string;
                /** @description Only calls with the keys that now have this owner, of their own or of their team. For example `jane@example.com`. */
                owner?: string;
                /** @description Only calls with the keys that now have this cost center, of their own or of their team. For example `CC-4711`. */
                cost_center?: string;
                /** @description Only calls to this provider. For example `openai`. */
                provider?: string;
                /** @description Only calls for this model. For example `gpt-4o-mini`. */
                model?: string;
                /** @description Only calls with one of these HTTP statuses, such as `429`, or classes, such as `5xx`, separated by commas. For example `429,5xx`. */
                status?: string;
                /** @description Only calls with this outcome. */
                outcome?: "completed" | "client_aborted" | "client_error" | "upstream_error" | "upstream_timeout" | "truncated" | "interrupted" | "replayed" | "cached" | "retried";
                /** @description Only failed calls: with a status of 400 or above, or that the provider or the gateway did not complete; `false`: only others. */
                failed?: "true" | "false";
                /** @description `false`: only calls whose usage was not read to the end, so that their cost is not known; `true`: only calls whose usage was. */
                usage_final?: "true" | "false";
                /** @description Only calls whose provider reported an error of this type or code. For example `insufficient_quota`. */
                provider_error?: string;
                /** @description Only calls that took this long or longer. For example `5000`. */
                min_duration_ms?: number;
                /** @description Only calls of this end user, as the request log stores it. For example `user-7`. */
                end_user?: string;
                /** @description Only calls of this session. For example `session-12`. */
                session?: string;
                /** @description Only calls with tokens that were issued to this subject, as the request log stores it. For example `repo:acme/api:ref:refs/heads/main`. */
                subject?: string;
                /** @description Only calls with this tag of `x-gateway-tags`, or with all of several, separated by commas. For example `env=prod`. */
                tag?: string;
                /** @description Only calls whose response the provider gave this ID. Give `from`, too: the log has no index for it. For example `req_011CQ3b8`. */
                provider_request_id?: string;
                /** @description Only calls that started at this time or later. For example `2026-01-31T12:00:00.000Z`. */
                from?: string;
                /** @description Only calls that started before this time. For example `2026-01-31T12:00:00.000Z`. */
                to?: string;
                /** @description Only rows written to the database after this time; for incremental export. For example `2026-01-31T12:00:00.000Z`. */
                recorded_after?: string;
                /** @description `ndjson`: one JSON object per line; `csv`: a table. */
                format?: "ndjson" | "csv";
                /** @description Maximum number of rows; absent: all. For example `1000`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rows. */
            200: {
                headers: {
                    /** @description `recorded_after` of the next export. */
                    "x-recorded-until"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                    "text/csv": string;
                };
            };
        };
    };
    getRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the call: its `x-gateway-request-id`. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The call. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShownRequest"];
                };
            };
        };
    };
    getUsage: {
        parameters: {
            query?: {
                /** @description What to group by, separated by commas: group, team, key, owner, cost_center, provider, model, end_user, session, tag:<name>, and one period (see `interval`). For example `model,day`. */
                group_by?: string;
                /** @description Period to group by. The same as its name in `group_by`. By `minute`, `from` must be at most 3 hours before `to`. */
                interval?: "month" | "week" | "day" | "hour" | "half_hour" | "minute";
                /** @description Time zone in which days, weeks (from Monday) and months begin. Default: `REPORT_TIMEZONE`. For example `Europe/Berlin`. */
                tz?: string;
                /** @description Figure to sort by, largest first. Absent: by the groups, newest period first. An archive cannot sort by `p95`. */
                sort?: "calls" | "errors" | "tokens" | "cost" | "cached_tokens" | "cache_write_tokens" | "completion_tokens" | "p95";
                /** @description Only calls of the teams that are now in this group, by name or ID. For example `dev`. */
                group?: string;
                /** @description Only calls of this team, by name or ID. For example `search`. */
                team?: string;
                /** @description Only calls with this key, by its ID or its first 12 characters. Never send a whole key. For example `ptn_4fGh7Kq2`. */
                key?: string;
                /** @description Only calls with the keys that now have this owner, of their own or of their team. For example `jane@example.com`. */
                owner?: string;
                /** @description Only calls with the keys that now have this cost center, of their own or of their team. For example `CC-4711`. */
                cost_center?: string;
                /** @description Only calls to this provider. For example `openai`. */
                provider?: string;
                /** @description Only calls for this model. For example `gpt-4o-mini`. */
                model?: string;
                /** @description Only calls with one of these HTTP statuses, such as `429`, or classes, such as `5xx`, separated by commas. For example `429,5xx`. */
                status?: string;
                /** @description Only calls with this outcome. */
                outcome?: "completed" | "client_aborted" | "client_error" | "upstream_error" | "upstream_timeout" | "truncated" | "interrupted" | "replayed" | "cached" | "retried";
                /** @description Only failed calls: with a status of 400 or above, or that the provider or the gateway did not complete; `false`: only others. */
                failed?: "true" | "false";
                /** @description `false`: only calls whose usage was not read to the end, so that their cost is not known; `true`: only calls whose usage was. */
                usage_final?: "true" | "false";
                /** @description Only calls whose provider reported an error of this type or code. For example `insufficient_quota`. */
                provider_error?: string;
                /** @description Only calls that took this long or longer. For example `5000`. */
                min_duration_ms?: number;
                /** @description Only calls of this end user, as the request log stores it. For example `user-7`. */
                end_user?: string;
                /** @description Only calls of this session. For example `session-12`. */
                session?: string;
                /** @description Only calls with tokens that were issued to this subject, as the request log stores it. For example `repo:acme/api:ref:refs/heads/main`. */
                subject?: string;
                /** @description Only calls with this tag of `x-gateway-tags`, or with all of several, separated by commas. For example `env=prod`. */
                tag?: string;
                /** @description Only calls whose response the provider gave this ID. Give `from`, too: the log has no index for it. For example `req_011CQ3b8`. */
                provider_request_id?: string;
                /** @description Only calls that started at this time or later. For example `2026-01-31T12:00:00.000Z`. */
                from?: string;
                /** @description Only calls that started before this time. For example `2026-01-31T12:00:00.000Z`. */
                to?: string;
                /** @description Only rows written to the database after this time; for incremental export. For example `2026-01-31T12:00:00.000Z`. */
                recorded_after?: string;
                /** @description Only the rows of so many values of the first group that is no period: of those with the largest sums over the whole time, by `sort`, else by cost. `totals` are those of all values. For charts, with a period in `group_by`. For example `8`. */
                series?: number;
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of groups. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsagePage"];
                };
            };
        };
    };
    exportUsage: {
        parameters: {
            query?: {
                /** @description What to group by, separated by commas: group, team, key, owner, cost_center, provider, model, end_user, session, tag:<name>, and one period (see `interval`). For example `model,day`. */
                group_by?: string;
                /** @description Period to group by. The same as its name in `group_by`. By `minute`, `from` must be at most 3 hours before `to`. */
                interval?: "month" | "week" | "day" | "hour" | "half_hour" | "minute";
                /** @description Time zone in which days, weeks (from Monday) and months begin. Default: `REPORT_TIMEZONE`. For example `Europe/Berlin`. */
                tz?: string;
                /** @description Figure to sort by, largest first. Absent: by the groups, newest period first. An archive cannot sort by `p95`. */
                sort?: "calls" | "errors" | "tokens" | "cost" | "cached_tokens" | "cache_write_tokens" | "completion_tokens" | "p95";
                /** @description Only calls of the teams that are now in this group, by name or ID. For example `dev`. */
                group?: string;
                /** @description Only calls of this team, by name or ID. For example `search`. */
                team?: string;
                /** @description Only calls with this key, by its ID or its first 12 characters. Never send a whole key. For example `ptn_4fGh7Kq2`. */
                key?: string;
                /** @description Only calls with the keys that now have this owner, of their own or of their team. For example `jane@example.com`. */
                owner?: string;
                /** @description Only calls with the keys that now have this cost center, of their own or of their team. For example `CC-4711`. */
                cost_center?: string;
                /** @description Only calls to this provider. For example `openai`. */
                provider?: string;
                /** @description Only calls for this model. For example `gpt-4o-mini`. */
                model?: string;
                /** @description Only calls with one of these HTTP statuses, such as `429`, or classes, such as `5xx`, separated by commas. For example `429,5xx`. */
                status?: string;
                /** @description Only calls with this outcome. */
                outcome?: "completed" | "client_aborted" | "client_error" | "upstream_error" | "upstream_timeout" | "truncated" | "interrupted" | "replayed" | "cached" | "retried";
                /** @description Only failed calls: with a status of 400 or above, or that the provider or the gateway did not complete; `false`: only others. */
                failed?: "true" | "false";
                /** @description `false`: only calls whose usage was not read to the end, so that their cost is not known; `true`: only calls whose usage was. */
                usage_final?: "true" | "false";
                /** @description Only calls whose provider reported an error of this type or code. For example `insufficient_quota`. */
                provider_error?: string;
                /** @description Only calls that took this long or longer. For example `5000`. */
                min_duration_ms?: number;
                /** @description Only calls of this end user, as the request log stores it. For example `user-7`. */
                end_user?: string;
                /** @description Only calls of this session. For example `session-12`. */
                session?: string;
                /** @description Only calls with tokens that were issued to this subject, as the request log stores it. For example `repo:acme/api:ref:refs/heads/main`. */
                subject?: string;
                /** @description Only calls with this tag of `x-gateway-tags`, or with all of several, separated by commas. For example `env=prod`. */
                tag?: string;
                /** @description Only calls whose response the provider gave this ID. Give `from`, too: the log has no index for it. For example `req_011CQ3b8`. */
                provider_request_id?: string;
                /** @description Only calls that started at this time or later. For example `2026-01-31T12:00:00.000Z`. */
                from?: string;
                /** @description Only calls that started before this time. For example `2026-01-31T12:00:00.000Z`. */
                to?: string;
                /** @description Only rows written to the database after this time; for incremental export. For example `2026-01-31T12:00:00.000Z`. */
                recorded_after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The table. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/csv": string;
                };
            };
        };
    };
    getStatement: {
        parameters: {
            query: {
                /** @description Name or ID of the team. */
                team: string;
                /** @description Month in the time zone. */
                month: string;
                /** @description Time zone in which days, weeks (from Monday) and months begin. Default: `REPORT_TIMEZONE`. For example `Europe/Berlin`. */
                tz?: string;
                /** @description `csv`: its lines as a table. For example `csv`. */
                format?: "json" | "csv";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The statement, or with `format=csv` its lines as a table. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsageStatement"];
                };
            };
        };
    };
    search: {
        parameters: {
            query: {
                /** @description The ID of a call, also its `call_id`, or of a team or key; the ID that a provider gave its response; the first 12 characters of a key; a part of the name of a team, a key or a model; an end user or a session. Never send a whole key, but to `POST /admin/v1/keys/find`. */
                q: string;
                /** @description `names`: only IDs and names, which are found at once; `log`: only what the request log has no index for. Absent: both. */
                in?: "names" | "log";
                /** @description The log is searched up to this time: `log.from` of a search before, to continue it. For example `2026-01-31T12:00:00.000Z`. */
                before?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was found. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchResult"];
                };
            };
        };
    };
    listRefusals: {
        parameters: {
            query?: {
                /** @description Groups, separated by commas: team, key, code, limit, provider, model. For example `key,code,limit`. */
                group_by?: string;
                /** @description Also by minute, hour or day. Counts that are older than 2 days are by hour. */
                interval?: "minute" | "hour" | "day";
                /** @description Time zone of days; absent: REPORT_TIMEZONE. For example `Europe/Berlin`. */
                tz?: string;
                /** @description Only requests with keys of this team, by name or ID. For example `search`. */
                team?: string;
                /** @description Only calls with this key, by its ID or its first 12 characters. Never send a whole key. For example `ptn_4fGh7Kq2`. */
                key?: string;
                /** @description Only this reason. For example `insufficient_quota`. */
                code?: string;
                /** @description Only calls that started at this time or later. For example `2026-01-31T12:00:00.000Z`. */
                from?: string;
                /** @description Only calls that started before this time. For example `2026-01-31T12:00:00.000Z`. */
                to?: string;
                /** @description Maximum number of groups, the largest first. For example `50`. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The largest groups, or with `interval` the newest. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RefusalPage"];
                };
            };
        };
    };
    listJobs: {
        parameters: {
            query?: {
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
                /** @description Only jobs in this state. For example `open`. */
                state?: "open" | "settled" | "unknown";
                /** @description Only jobs of this provider. For example `openai`. */
                provider?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of jobs. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobPage"];
                };
            };
        };
    };
    getJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the a job. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The job. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
        };
    };
    checkJob: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the a job. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Nothing"];
            };
        };
        responses: {
            /** @description The job, which is due. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Job"];
                };
            };
        };
    };
    listLimits: {
        parameters: {
            query?: {
                /** @description Only limits of this team and its keys, by name or ID. For example `search`. */
                team?: string;
                /** @description Only limits of this key, by ID. For example `01890a5d-ac96-774b-bcce-b302099a8057`. */
                key?: string;
                /** @description Only this limit. For example `01890a5d-ac96-774b-bcce-b302099a8057`. */
                id?: string;
                /** @description Only limits of the installation, of groups, of teams or of keys. */
                scope?: "installation" | "group" | "team" | "key";
                /** @description Only limits that name this provider. For example `openai`. */
                provider?: string;
                /** @description Only limits of some models that count this one. For example `claude-opus-4-5`. */
                model?: string;
                /** @description Only limits in this state. */
                state?: "ok" | "warned" | "exhausted" | "blocking";
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of limits. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitPage"];
                };
            };
        };
    };
    getInstallationLimits: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The limits. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InstallationLimits"];
                };
            };
        };
    };
    changeInstallationLimits: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["InstallationLimitsChange"];
            };
        };
        responses: {
            /** @description The limits. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InstallationLimits"];
                };
            };
        };
    };
    previewLimits: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LimitPreview"];
            };
        };
        responses: {
            /** @description What they would have done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LimitPreviewResult"];
                };
            };
        };
    };
    resetLimit: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the limit. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LimitReset"];
            };
        };
        responses: {
            /** @description The budget. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Limit"];
                };
            };
        };
    };
    listPrices: {
        parameters: {
            query?: {
                /** @description Only prices of this price list or provider. For example `openai`. */
                catalog?: string;
                /** @description Only prices with exactly this model or pattern. For example `gpt-4o*`. */
                model?: string;
                /** @description Only prices from this source. */
                source?: "catalog" | "custom";
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of prices. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PricePage"];
                };
            };
        };
    };
    createPrice: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewPrice"];
            };
        };
        responses: {
            /** @description The new price. */
            201: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Price"];
                };
            };
        };
    };
    resolvePrice: {
        parameters: {
            query: {
                /** @description Name of the provider. */
                provider: string;
                /** @description The model as calls name it. */
                model: string;
                /** @description Start of the call. Absent: now. For example `2026-01-31T12:00:00.000Z`. */
                at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The price, or why there is none. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PriceResolution"];
                };
            };
        };
    };
    listMissingPrices: {
        parameters: {
            query?: {
                /** @description Calls that started at this time or later. Default: 7 days ago, or the begin of the month in `REPORT_TIMEZONE` if that is earlier. For example `2026-01-31T12:00:00.000Z`. */
                from?: string;
                /** @description Calls that started before this time. Default: now. For example `2026-01-31T12:00:00.000Z`. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All such models. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MissingPrices"];
                };
            };
        };
    };
    reprice: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Repricing"];
            };
        };
        responses: {
            /** @description What changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Repriced"];
                };
            };
        };
    };
    getPrice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the price. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The price. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Price"];
                };
            };
        };
    };
    removePrice: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description ID of the price. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changePrice: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description ID of the price. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PriceChange"];
            };
        };
        responses: {
            /** @description The changed price. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Price"];
                };
            };
        };
    };
    listWebhooks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All webhooks, newest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookPage"];
                };
            };
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWebhook"];
            };
        };
        responses: {
            /** @description The new webhook. */
            201: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedWebhook"];
                };
            };
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    removeWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description ID of the webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description ID of the webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookChange"];
            };
        };
        responses: {
            /** @description The changed webhook. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    listWebhookDeliveries: {
        parameters: {
            query?: {
                /** @description Only deliveries in this state. `waiting`: not attempted yet; `retrying`: another attempt follows; `failed`: the last attempt has failed. */
                state?: "waiting" | "delivered" | "retrying" | "failed";
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description ID of the webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of deliveries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDeliveryPage"];
                };
            };
        };
    };
    replayWebhookEvent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookReplay"];
            };
        };
        responses: {
            /** @description The delivery, which is waiting again. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListedWebhookDelivery"];
                };
            };
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the webhook. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Nothing"];
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookTest"];
                };
            };
        };
    };
    listPolicies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All policies, in the order in which they are asked. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyPage"];
                };
            };
        };
    };
    createPolicy: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewPolicy"];
            };
        };
        responses: {
            /** @description The new policy. */
            201: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Policy"];
                };
            };
        };
    };
    getPolicy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name or ID of the policy. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The policy. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Policy"];
                };
            };
        };
    };
    removePolicy: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description Name or ID of the policy. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changePolicy: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description Name or ID of the policy. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PolicyChange"];
            };
        };
        responses: {
            /** @description The changed policy. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Policy"];
                };
            };
        };
    };
    testPolicy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name or ID of the policy. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TestedCall"];
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyTest"];
                };
            };
        };
    };
    apply: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Apply"];
            };
        };
        responses: {
            /** @description What was changed, or would be. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Applied"];
                };
            };
        };
    };
    listSinks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All sinks, by name. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SinkPage"];
                };
            };
        };
    };
    createSink: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSink"];
            };
        };
        responses: {
            /** @description The new sink. */
            201: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sink"];
                };
            };
        };
    };
    getSink: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the sink. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The sink. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sink"];
                };
            };
        };
    };
    removeSink: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description ID of the sink. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    changeSink: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description ID of the sink. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SinkChange"];
            };
        };
        responses: {
            /** @description The changed sink. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sink"];
                };
            };
        };
    };
    replaySink: {
        parameters: {
            query?: never;
            header?: {
                /** @description `ETag` of an earlier response. If the object has changed since, the response is 409. */
                "If-Match"?: string;
            };
            path: {
                /** @description ID of the sink. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SinkReplay"];
            };
        };
        responses: {
            /** @description The sink. */
            200: {
                headers: {
                    /** @description Identifies this state of the object. Send it as `If-Match` to change only this state. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sink"];
                };
            };
        };
    };
    listTokens: {
        parameters: {
            query?: {
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of tokens. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminTokenPage"];
                };
            };
        };
    };
    createToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewAdminToken"];
            };
        };
        responses: {
            /** @description The new token. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IssuedAdminToken"];
                };
            };
        };
    };
    revokeToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the token. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listSessions: {
        parameters: {
            query?: {
                /** @description Only sessions of this user, by the name in the audit log. For example `sso:jane@example.com`. */
                actor?: string;
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of sessions. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminSessionPage"];
                };
            };
        };
    };
    endSessions: {
        parameters: {
            query: {
                /** @description The user whose sessions end, by the name in the audit log. */
                actor: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ended. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EndedSessions"];
                };
            };
        };
    };
    endSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the session. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ended. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listDatabaseRegressions: {
        parameters: {
            query?: {
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of them. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DatabaseRegressionPage"];
                };
            };
        };
    };
    getDatabaseRegression: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the regression. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The loss. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DatabaseRegression"];
                };
            };
        };
    };
    putBackDatabaseRegression: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the regression. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Nothing"];
            };
        };
        responses: {
            /** @description It is put back now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DatabaseRegression"];
                };
            };
        };
    };
    dismissDatabaseRegression: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description ID of the regression. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["Nothing"];
            };
        };
        responses: {
            /** @description Nothing is put back. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DatabaseRegression"];
                };
            };
        };
    };
    listAudit: {
        parameters: {
            query?: {
                /** @description Only changes by this actor. For example `admin-token`. */
                actor?: string;
                /** @description Only changes of this kind. */
                action?: "applied" | "changed" | "created" | "dismissed" | "ended" | "forgotten" | "put_back" | "removed" | "reopened" | "replayed" | "repriced" | "resealed" | "reset" | "revoked" | "rotated" | "signed_in" | "signed_out";
                /** @description Only changes of objects of this type. */
                subject_type?: "configuration" | "device_request" | "group" | "installation_limits" | "issued_token" | "key" | "limit" | "person" | "policy" | "price" | "provider" | "provider_job" | "regression" | "route" | "session" | "sign_in" | "sink" | "team" | "token" | "trust" | "webhook";
                /** @description Only changes of this team, key or provider. For example `01890a5d-ac96-774b-bcce-b302099a8057`. */
                subject_id?: string;
                /** @description Only changes of objects that had this name at that time. For example `search`. */
                subject_name?: string;
                /** @description At this time or later. For example `2026-01-31T12:00:00.000Z`. */
                from?: string;
                /** @description Before this time. For example `2026-01-31T12:00:00.000Z`. */
                to?: string;
                /** @description Maximum number of rows. For example `50`. */
                limit?: number;
                /** @description `next_cursor` of the previous page. For example `AaICky58duGSEqvtqqRdvw`. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of changes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditPage"];
                };
            };
        };
    };
    backChannelLogout: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What began in this session at the provider has ended. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    getOwnKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description End user whose limits of this key are shown too. Without it, limits of end users are left out. Those of the team are never shown: they count the calls of its other keys. */
                "x-gateway-user"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OwnKey"];
                };
            };
        };
    };
    getOwnUsage: {
        parameters: {
            query?: {
                /** @description First of the days. Default: the first of the month. For example `2026-01-01`. */
                from?: string;
                /** @description Last of the days. Default: today. For example `2026-01-31`. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Today, this month, and by day. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OwnUsage"];
                };
            };
        };
    };
    getOwnRefusals: {
        parameters: {
            query?: {
                /** @description Only calls that started at this time or later. For example `2026-01-31T12:00:00.000Z`. */
                from?: string;
                /** @description Only calls that started before this time. For example `2026-01-31T12:00:00.000Z`. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The most frequent reasons first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OwnRefusals"];
                };
            };
        };
    };
    getSystem: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state, without secrets. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["System"];
                };
            };
        };
    };
    getChangelog: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Markdown. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    getAttention: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The most urgent first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Attention"];
                };
            };
        };
    };
    getLiveness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It runs. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Liveness"];
                };
            };
        };
    };
    getReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Calls are served. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
        };
    };
    getMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The metrics. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
        };
    };
}
