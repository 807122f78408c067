// The provider of npm's oidc-provider, for tests on loopback: `node provider.mjs SETTINGS.json`.
// Settings: port, redirect_uri, secret, auth_method, algorithm, groups_in_token, accounts (groups by name), cert and key
// (PEM files) for TLS. Everybody logs in with any password.
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer as createPlain } from 'node:http';
import { createServer as createSecure } from 'node:https';
import { Provider } from 'oidc-provider';

const settings = JSON.parse(readFileSync(process.argv[2], 'utf8'));
// One for RS256 and PS256, one for ES256.
const keys = [
  generateKeyPairSync('rsa', { modulusLength: 2048 }),
  generateKeyPairSync('ec', { namedCurve: 'P-256' }),
].map(({ privateKey }) => ({ ...privateKey.export({ format: 'jwk' }), use: 'sig' }));
const scheme = settings.cert ? 'https' : 'http';

const provider = new Provider(`${scheme}://127.0.0.1:${settings.port}`, {
  clients: [{
    client_id: 'portcullis',
    client_secret: settings.secret,
    token_endpoint_auth_method: settings.auth_method,
    id_token_signed_response_alg: settings.algorithm,
    redirect_uris: [settings.redirect_uri],
    grant_types: ['authorization_code'],
    response_types: ['code'],
  }],
  claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
  conformIdTokenClaims: !settings.groups_in_token,
  jwks: { keys },
  cookies: { keys: ['tests only'] },
  enabledJWA: { idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256'] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: `id-of-${id}`, preferred_username: id, groups: settings.accounts[id] }),
  }),
});

const server = settings.cert
  ? createSecure({ cert: readFileSync(settings.cert), key: readFileSync(settings.key) }, provider.callback())
  : createPlain(provider.callback());
server.listen(settings.port, '127.0.0.1');
