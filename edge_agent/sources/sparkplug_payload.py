"""Messages of Sparkplug B 3.0, built from the field numbers of its specification."""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_TYPES = {
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
    "uint32": descriptor_pb2.FieldDescriptorProto.TYPE_UINT32,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "float": descriptor_pb2.FieldDescriptorProto.TYPE_FLOAT,
    "double": descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE,
}
_METRIC = [
    ("name", 1, "string"),
    ("alias", 2, "uint64"),
    ("timestamp", 3, "uint64"),
    ("datatype", 4, "uint32"),
    ("is_null", 7, "bool"),
]
_VALUES = [
    ("int_value", 10, "uint32"),
    ("long_value", 11, "uint64"),
    ("float_value", 12, "float"),
    ("double_value", 13, "double"),
    ("boolean_value", 14, "bool"),
    ("string_value", 15, "string"),
]
WIDTHS = {1: 8, 2: 16, 3: 32, 4: 64, 5: 8, 6: 16, 7: 32, 8: 64}  # bits of the whole-number data types
BOOLEAN = 11


def _payload_class() -> Any:
    """Return the class of a payload; fields that the agent does not use are left out and ignored."""
    file = descriptor_pb2.FileDescriptorProto(
        name="alarmcast/sparkplug.proto", package="alarmcast", syntax="proto2"
    )
    metric = file.message_type.add(name="Metric")
    metric.oneof_decl.add(name="value")
    optional = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
    for name, number, kind in _METRIC:
        metric.field.add(name=name, number=number, type=_TYPES[kind], label=optional)
    for name, number, kind in _VALUES:
        metric.field.add(name=name, number=number, type=_TYPES[kind], label=optional, oneof_index=0)
    payload = file.message_type.add(name="Payload")
    payload.field.add(name="timestamp", number=1, type=_TYPES["uint64"], label=optional)
    payload.field.add(
        name="metrics",
        number=2,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
        type_name=".alarmcast.Metric",
        label=descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED,
    )
    payload.field.add(name="seq", number=3, type=_TYPES["uint64"], label=optional)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("alarmcast.Payload"))


Payload = _payload_class()


def metric_value(metric: Any) -> bool | int | float | str | None:
    """Return the value of a metric; None if it is null or of a kind that cannot be an alarm."""
    field = metric.WhichOneof("value")
    if field is None or metric.is_null:
        return None
    value: bool | int | float | str = getattr(metric, field)
    return value


def rebirth_request(timestamp: int) -> bytes:
    """Return the command that makes an edge node send its births again."""
    payload = Payload(timestamp=timestamp)
    payload.metrics.add(name="Node Control/Rebirth", timestamp=timestamp, datatype=BOOLEAN, boolean_value=True)
    return bytes(payload.SerializeToString())
