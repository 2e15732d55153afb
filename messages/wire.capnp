@0xd1c3a5f0b2e49687;
struct Frame { from @0 :UInt32; }
