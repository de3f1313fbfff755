"""Makes a directory of an ext4 with the feature `encrypt` that is encrypted with a key of chance (fscrypt of Linux).

    fscrypt.py DIRECTORY
"""
import fcntl
import os
import struct
import sys

# linux/fscrypt.h
FS_IOC_ADD_ENCRYPTION_KEY = 3 << 30 | 80 << 16 | ord("f") << 8 | 23
FS_IOC_SET_ENCRYPTION_POLICY = 2 << 30 | 12 << 16 | ord("f") << 8 | 19
KEY_SPEC_TYPE_IDENTIFIER = 2
AES_256_XTS, AES_256_CTS, PAD_32 = 1, 4, 3

key = os.urandom(64)
argument = bytearray(struct.pack("<II32sII32s", KEY_SPEC_TYPE_IDENTIFIER, 0, b"", len(key), 0, b"") + key)
os.mkdir(sys.argv[1])
directory = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(directory, FS_IOC_ADD_ENCRYPTION_KEY, argument)
policy = bytearray(struct.pack("<BBBB4s16s", 2, AES_256_XTS, AES_256_CTS, PAD_32, b"", argument[8:24]))
fcntl.ioctl(directory, FS_IOC_SET_ENCRYPTION_POLICY, policy)
