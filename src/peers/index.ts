/**
 * Requests from one process of a gateway to another one: a JSON value, answered by another, or by a stream of text. The connections
 * are encrypted and authenticated by a key that both processes know (TLS with a pre-shared key), so only processes of this gateway
 * get past the handshake. Not here: how a process learns the address and key of another one, and the meaning of requests.
 */
export type { PeerAddress, PeerResponse, PeerStream, PeerStreamReader } from './peer.ts';
export { callPeer, type PeerAnswer, PeerUnreachable } from './peer-call.ts';
export { peerHost } from './peer-host.ts';
export { PeerServer } from './peer-server.ts';
