import assert from 'node:assert/strict';
import { test } from 'node:test';
import { regionOf } from './region.ts';

const hosts = { global: ['gw.example'], europe: ['eu.gw.example'], us: ['us.gw.example'] };

test('the requested host determines the region, whatever its case, port and trailing dot', () => {
  assert.equal(regionOf('eu.gw.example', hosts), 'europe');
  assert.equal(regionOf('US.GW.Example.:8484', hosts), 'us');
  assert.equal(regionOf('gw.example', hosts), 'global');
  assert.equal(regionOf('eu.gw.example.evil', hosts), 'global');
  assert.equal(regionOf(undefined, hosts), 'global');
  assert.equal(regionOf('eu.gw.example', { global: [], europe: [], us: [] }), 'global');
});
